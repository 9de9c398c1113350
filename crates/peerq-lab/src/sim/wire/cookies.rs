//! A client's cookies on their way to a peer, and the freshest that has reached it.

use std::collections::VecDeque;

use crate::sim::queue::Micros;

/// See the module documentation. What has arrived is forgotten for the one that arrived last, as a peer does.
#[derive(Clone, Debug, Default)]
pub(super) struct Cookies {
    /// When each reaches the peer, ascending, and the cookie.
    under_way: VecDeque<(Micros, u16)>,
    freshest: u16,
}

impl Cookies {
    /// A cookie is sent that reaches the peer at this moment, but not before those sent earlier.
    pub(super) fn send(&mut self, cookie: u16, reaches_at: Micros) {
        let after = self.under_way.back().map_or(0, |(at, _)| *at);
        self.under_way.push_back((reaches_at.max(after), cookie));
    }

    /// The freshest that had reached the peer by this moment; 0 is none. A freshest cookie is never followed by an older one.
    pub(super) fn freshest(&mut self, by: Micros) -> u16 {
        while let Some((at, cookie)) = self.under_way.front().copied()
            && at <= by
        {
            self.freshest = cookie;
            self.under_way.pop_front();
        }
        self.freshest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_freshest_cookie_only_gets_fresher_and_none_overtakes() {
        let mut cookies = Cookies::default();
        assert_eq!(cookies.freshest(100), 0);
        cookies.send(7, 50);
        cookies.send(8, 40);
        assert_eq!((cookies.freshest(49), cookies.freshest(50)), (0, 8));
        assert_eq!(cookies.freshest(0), 8);
    }
}
