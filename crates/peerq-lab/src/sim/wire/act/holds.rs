//! Holds echoes: answers each cookie later than it could. A peer can "inflate its RTT by delaying echoes, which only self-penalises" (The attacks we consider, RTT
//! manipulation). Scenario B7.
//!
//! A cookie that is still held when a reply ends is echoed by the next reply's first SDU, like that of anyone with a queue of this length.

use super::Cookies;
use crate::sim::queue::{Micros, micros};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Holds {
    by: Micros,
}

impl Holds {
    pub(super) fn new(by_ms: f64) -> Self {
        Holds { by: micros(by_ms * 1e-3) }
    }

    pub(super) fn echo(self, cookies: &mut Cookies, left: Micros) -> u16 {
        cookies.freshest(left.saturating_sub(self.by))
    }
}
