//! Echoes stale cookies only: the first one that it received, again and again, so that bytes keep coming and no echo matches. A peer "cannot simultaneously game a gap-based
//! throughput estimate and keep the liveness/echo signal flowing" (The adversary bind); this one gives up the echoes. Scenario B7.

use super::Cookies;
use crate::sim::queue::Micros;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stale {
    first: u16,
}

impl Stale {
    pub(super) fn echo(&mut self, cookies: &mut Cookies, left: Micros) -> u16 {
        if self.first == 0 {
            self.first = cookies.freshest(left);
        }
        self.first
    }
}
