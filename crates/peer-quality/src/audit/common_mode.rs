//! Common mode: when most peers fail together, the fault is ours (AUD-7, scenarios A5 and A6).
//!
//! A failure is charged at once, so that work moves on, and what it is charged to is kept as it was before. When something completes
//! again, that decides: if most of the active peers had failed in between, their records are put back; if not, the charges stand. Active is who has requests in flight, and who
//! delivered while those that failed were under way, so that a few who are slow to the end do not pass for everybody. Nothing is put back either where what
//! completes shows that our link was working, and that they failed together for a reason of their own: it came on time, and it was on its way all the while, or
//! the bytes of most that failed kept coming to their end, only slowly. (Our link was not cut then; had it been crowded, this one would be late too.) Among few, it takes
//! one of those that failed to deliver again: a few that are silent together go free if another one's delivery speaks for them.
//!
//! Until it is decided, whoever did not fail yet is asked first: if the fault is ours, that costs nothing, and if not, it finds out.
//! Requests that were under way then may still fail later, and charge nobody.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::units::{Span, Time};

/// Share of the active peers that must have failed. Lower lets a few hostile peers that fail together go free, higher charges honest ones for an outage that one survived.
const QUORUM: f64 = 0.6;
/// Peers active below which the share alone says little: it takes persistence as well.
const FEW: u32 = 5;
/// Failures of requests sent after the first of them had failed that are persistence.
const PERSISTENT: u32 = 3;
/// The latest completions that are remembered. More sees more of who else is active, fewer is quicker to look through.
const COMPLETIONS: usize = 32;
/// The most peers whose records are kept: more than are active at once in any sensible host, and a bound on memory. Charges against the rest stand.
const MOST_KEPT: usize = 1024;

/// Whether so many of the active peers are most of them, and those are enough to tell.
pub(crate) fn is_quorum(peers: u32, active: u32) -> bool {
    active >= FEW && f64::from(peers) >= QUORUM * f64::from(active)
}

/// A request failed.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// When, and how long after it was sent.
    pub at: Time,
    /// See [`at`](Self::at).
    pub elapsed: Span,
    /// Whether its bytes kept coming to the end, if too slowly.
    pub dribbled: bool,
    /// How many peers had requests in flight, this one among them.
    pub active: u32,
}

/// Which peers `P` failed since anything completed, and their records `R` as they were before; see the module documentation.
#[derive(Clone, Debug)]
pub struct CommonMode<P, R> {
    failed: Vec<(P, R)>,
    failures: u32,
    /// Those of requests sent after the first of them had failed.
    again: u32,
    /// Those of requests whose bytes kept coming.
    dribbled: u32,
    /// Most peers active at once since the first failure.
    active: u32,
    since: Time,
    /// When the first of the failed requests was sent.
    began: Time,
    /// Who completed lately, the latest last.
    completions: VecDeque<(P, Time)>,
    /// When it was ours last: until then.
    ours_until: Option<Time>,
}

impl<P, R> Default for CommonMode<P, R> {
    fn default() -> Self {
        CommonMode {
            failed: Vec::new(),
            failures: 0,
            again: 0,
            dribbled: 0,
            active: 0,
            since: Time::default(),
            began: Time::default(),
            completions: VecDeque::new(),
            ours_until: None,
        }
    }
}

impl<P: Copy + Ord, R> CommonMode<P, R> {
    /// A request to `peer` failed. `before` is asked for its record if it is the first.
    pub fn failed(&mut self, peer: P, failure: &Failure, before: impl FnOnce() -> R) {
        let Failure { at: now, elapsed, dribbled, active } = *failure;
        let sent = Time::from_micros(now.as_micros().saturating_sub(elapsed.as_micros()));
        if self.failures == 0 {
            (self.since, self.began) = (now, sent);
        }
        self.began = self.began.min(sent);
        self.failures = self.failures.saturating_add(1);
        self.again = self.again.saturating_add(u32::from(sent >= self.since && now > self.since));
        self.dribbled = self.dribbled.saturating_add(u32::from(dribbled));
        self.active = self.active.max(active);
        if self.failed.len() < MOST_KEPT && !self.failed.iter().any(|(other, _)| *other == peer) {
            self.failed.push((peer, before()));
        }
    }

    fn active(&self) -> u32 {
        self.active.max(self.failed.len() as u32 + self.delivered_meanwhile())
    }

    /// Whether, as things stand, the fault is ours.
    pub fn is_ours(&self) -> bool {
        let (peers, active) = (self.failed.len() as u32, self.active());
        if active < FEW {
            return peers >= 2 && peers >= active && self.again >= PERSISTENT;
        }
        is_quorum(peers, active)
    }

    /// Peers that completed something while those that failed were under way, and did not fail.
    fn delivered_meanwhile(&self) -> u32 {
        let meanwhile = self.completions.iter().filter(|(_, at)| *at > self.began);
        let mut peers: Vec<P> = Vec::new();
        for &(peer, _) in meanwhile {
            if !peers.contains(&peer) && !self.failed.iter().any(|(failed, _)| *failed == peer) {
                peers.push(peer);
            }
        }
        peers.len() as u32
    }

    /// Notes that a request to `peer` completed at `now`; to be called after [`completed`](Self::completed), which judges by what came before.
    #[inline]
    pub fn note(&mut self, peer: P, now: Time) {
        match self.completions.back_mut() {
            Some((latest, at)) if *latest == peer => *at = now,
            _ => {
                if self.completions.len() == COMPLETIONS {
                    self.completions.pop_front();
                }
                self.completions.push_back((peer, now));
            }
        }
    }

    /// Whether a peer that is not left out completed something after `since`.
    pub fn completed_since(&self, since: Time, left_out: impl Fn(P) -> bool) -> bool {
        self.completions.iter().any(|(peer, at)| *at > since && !left_out(*peer))
    }

    /// Whether nothing failed since anything completed.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.failures == 0
    }

    /// Who failed since anything completed, in order, where the fault looks like ours.
    pub fn suspects(&self) -> Option<Vec<P>> {
        (!self.is_quiet() && self.is_ours()).then(|| {
            let mut suspects: Vec<P> = self.failed.iter().map(|(peer, _)| *peer).collect();
            suspects.sort_unstable();
            suspects
        })
    }

    /// A request that had run for `elapsed` completed at `now`, as soon as was to be expected or not. What to put back, which is nothing where the fault was not ours.
    pub fn completed(&mut self, peer: P, elapsed: Span, on_time: bool, now: Time) -> Vec<(P, R)> {
        let under_way_all_the_while = now.since(self.since) <= elapsed;
        let most_dribbled = self.dribbled > self.failures / 2;
        let link_worked = on_time && (under_way_all_the_while || most_dribbled);
        let healed = self.active() >= FEW || self.failed.iter().any(|(failed, _)| *failed == peer);
        let ours = self.is_ours() && healed && !link_worked;
        let ours_until = if ours { Some(now) } else { self.ours_until };
        let completions = core::mem::take(&mut self.completions);
        let fresh = CommonMode { ours_until, completions, ..CommonMode::default() };
        let CommonMode { failed, .. } = core::mem::replace(self, fresh);
        if ours { failed } else { Vec::new() }
    }

    /// Whether a request that failed after `elapsed` was under way while the fault was ours.
    pub fn excuses(&self, elapsed: Span, now: Time) -> bool {
        // A clock that went back says nothing of what was under way.
        self.ours_until.is_some_and(|until| now >= until && now.since(until) < elapsed)
    }

    /// What `peer` did stands on its own, or it is gone: nothing is put back.
    pub fn forget(&mut self, peer: P) {
        self.failed.retain(|(other, _)| *other != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Span = Span::from_secs(30);

    fn at(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    fn failure(second: u64, active: u32) -> Failure {
        Failure { at: at(second), elapsed: PATIENCE, dribbled: false, active }
    }

    fn after(failures: &[usize], active: u32) -> CommonMode<usize, usize> {
        let mut common = CommonMode::default();
        for &peer in failures {
            common.failed(peer, &failure(100, active), || peer);
        }
        common
    }

    fn put_back(mut common: CommonMode<usize, usize>, elapsed: Span, on_time: bool) -> Vec<usize> {
        common.completed(0, elapsed, on_time, at(130)).into_iter().map(|(_, peer)| peer).collect()
    }

    #[test]
    fn most_of_the_active_peers_at_once_are_our_fault() {
        assert_eq!(put_back(after(&[0, 1, 2], 5), Span::from_secs(1), true), [0, 1, 2]);
        assert!(put_back(after(&[0, 1], 5), Span::from_secs(1), true).is_empty(), "two of five");
        assert!(put_back(after(&[0; 40], 5), Span::from_secs(1), true).is_empty(), "one, often");
        assert!(put_back(after(&[0, 1, 2, 3, 4, 5], 64), Span::from_secs(1), true).is_empty(), "six of 64");
    }

    #[test]
    fn among_few_it_takes_all_of_them_and_persistence() {
        let again = |peers: &[usize], active, by| {
            let mut common = after(peers, active);
            for round in 1..3 {
                for &peer in peers {
                    common.failed(peer, &failure(100 + 30 * round, active), || peer);
                }
            }
            common.completed(by, Span::from_secs(1), true, at(170)).len()
        };
        assert!(put_back(after(&[0, 1, 0, 1, 0, 1], 2), Span::from_secs(1), true).is_empty(), "many at once are once");
        assert_eq!(again(&[0, 1], 2, 1), 2);
        assert_eq!(again(&[0, 1], 3, 1), 0, "a third does not fail");
        assert_eq!(again(&[0], 1, 0), 0, "there is only one");
        assert_eq!(again(&[0, 1, 2, 3], 4, 9), 0, "another delivers at once: it was them");
        assert_eq!(again(&[0, 1, 2, 3, 4], 5, 9), 5, "so many do not fail by themselves");
    }

    #[test]
    fn suspects_are_those_that_failed_since_anything_completed_where_most_did() {
        assert_eq!(CommonMode::<usize, usize>::default().suspects(), None);
        assert_eq!(after(&[1, 0], 5).suspects(), None, "two of five");
        let mut common = after(&[2, 0, 1, 2], 5);
        assert_eq!(common.suspects(), Some(std::vec![0, 1, 2]));
        common.completed(0, Span::from_secs(1), true, at(130));
        assert_eq!(common.suspects(), None);
    }

    #[test]
    fn who_delivered_meanwhile_was_active_too() {
        let failing = |completions: &[(usize, u64)]| {
            let mut common = CommonMode::default();
            completions.iter().for_each(|&(peer, second)| common.note(peer, at(second)));
            (0..5).for_each(|peer| common.failed(peer, &failure(100, 5), || peer));
            common.is_ours()
        };
        assert!(failing(&[]) && failing(&[(5, 69), (6, 70), (7, 70), (8, 70)]), "before that");
        assert!(!failing(&[(5, 71), (6, 72), (7, 73), (8, 74)]), "five of nine");
        assert!(failing(&[(0, 71), (1, 72), (2, 73), (3, 74)]), "their own say nothing");
        let crowd: Vec<_> = (0..99).map(|nth| (5 + nth, 71)).collect();
        assert!(!failing(&crowd));
    }

    #[test]
    fn a_request_that_came_through_on_time_shows_that_the_link_worked() {
        assert!(put_back(after(&[0, 1, 2, 3], 5), PATIENCE, true).is_empty());
        assert_eq!(put_back(after(&[0, 1, 2, 3], 5), PATIENCE, false).len(), 4, "it was late as well");
    }

    #[test]
    fn most_dribbling_to_the_end_beside_a_link_that_works_are_charged() {
        let dribblers = |dribbling: usize| {
            let mut common = CommonMode::default();
            for peer in 0..6 {
                let failure = Failure { dribbled: peer < dribbling, ..failure(100, 7) };
                common.failed(peer, &failure, || peer);
            }
            common
        };
        let soon = Span::from_millis(80);
        assert!(put_back(dribblers(4), soon, true).is_empty());
        assert_eq!(put_back(dribblers(4), soon, false).len(), 6, "the link is crowded");
        assert_eq!(put_back(dribblers(3), soon, true).len(), 6, "half of them were cut off");
    }

    #[test]
    fn a_completion_begins_anew() {
        let mut common = after(&[0, 1], 5);
        assert!(common.completed(0, PATIENCE, false, at(130)).is_empty());
        common.failed(2, &failure(161, 5), || 2);
        assert!(!common.is_ours());
        assert!(common.completed(0, PATIENCE, false, at(170)).is_empty());
    }

    #[test]
    fn what_was_under_way_is_excused_later_and_what_was_sent_afterwards_is_not() {
        let mut common = after(&[0, 1, 2], 5);
        assert!(!common.excuses(PATIENCE, at(130)), "not decided yet");
        common.completed(0, Span::from_secs(1), true, at(130));
        assert!(common.excuses(PATIENCE, at(159)) && !common.excuses(PATIENCE, at(160)));
        assert!(!common.excuses(PATIENCE, at(60)), "the clock went back");
        assert!(common.completed(0, Span::from_secs(1), true, at(140)).is_empty());
        assert!(common.excuses(PATIENCE, at(159)), "completions change nothing in it");
    }

    #[test]
    fn what_is_kept_is_bounded_and_can_be_forgotten() {
        let mut common = after(&(0..3000).collect::<Vec<_>>(), 3000);
        assert_eq!(common.failed.len(), MOST_KEPT);
        assert!(!common.is_ours(), "a third of the active peers");
        common.forget(7);
        assert_eq!(common.failed.len(), MOST_KEPT - 1);
    }
}
