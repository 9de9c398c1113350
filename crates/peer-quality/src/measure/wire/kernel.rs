//! What the kernel knows of the path, where it tells, and what it says about a peer's echoes (MEAS-11).
//!
//! A kernel acknowledges without asking the application. A round trip that is short for the kernel and long for the echo was spent inside the peer; one that is
//! long for both was spent on the way. Nothing here is needed for a ranking: an echo held back lengthens the peer's own round trip and
//! costs it rank as it is. It says why, which matters before anyone is demoted.

use super::rtt::RttQuantiles;
use crate::units::{Bytes, Span};

/// How many times the kernel's round trip an echo may take before the peer is said to hold it.
/// Too low accuses peers whose applications wake late; too high lets holding hide on near paths. Unmeasured heuristic.
const HOLDING_MULTIPLE: u64 = 2;

/// What an echo may take beyond that multiple: scheduling and collection on both sides.
/// Too low accuses near peers of a pause; too high hides holding on them. Unmeasured heuristic, the floor of the gate.
const HOLDING_SLACK: Span = super::gate::GATE_FLOOR;

/// Kernel round trips from here on are far. The median of measured paths between hosts worldwide is 94.5 ms.
/// A label for people: nothing is decided by it.
const FAR: Span = Span::from_millis(95);

/// A reading of the kernel's figures for one socket (Linux: `tcp_info`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFacts {
    /// Smoothed round trip.
    pub rtt: Span,
    /// Least round trip seen, where the kernel has one. Echoes faster than it are forged.
    pub rtt_min: Option<Span>,
    /// Our congestion window. It limits what we send, so it sharpens the ramp of an upload and says nothing about a download.
    pub congestion_window: Option<Bytes>,
    /// Segments retransmitted by us since the connection began; a sign of loss on the path.
    pub retransmits: Option<u32>,
}

/// Where the round trip of echoes is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribution {
    /// The kernel told nothing, or no echo matched yet.
    Unknown,
    /// Both round trips are short.
    Near,
    /// Both are long: the peer is far.
    Far,
    /// The kernel's is short and the echo's long: the peer sits on cookies.
    HoldsEchoes,
}

impl KernelFacts {
    /// Compares the kernel's round trip with the median of the echoes.
    pub fn attribute(&self, echoes: Option<RttQuantiles>) -> Attribution {
        let Some(echoes) = echoes.filter(|_| self.rtt > Span::ZERO) else {
            return Attribution::Unknown;
        };
        let allowed = self.rtt.as_micros().saturating_mul(HOLDING_MULTIPLE).saturating_add(HOLDING_SLACK.as_micros());
        match () {
            () if echoes.median.as_micros() > allowed => Attribution::HoldsEchoes,
            () if self.rtt >= FAR => Attribution::Far,
            () => Attribution::Near,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kernel_ms: u64, echo_ms: u64) -> Attribution {
        let echo = Span::from_millis(echo_ms);
        let echoes = RttQuantiles { median: echo, high: echo, tail: echo, samples: 5 };
        KernelFacts { rtt: Span::from_millis(kernel_ms), ..KernelFacts::default() }.attribute(Some(echoes))
    }

    #[test]
    fn holding_is_told_from_distance() {
        assert_eq!(attribute(20, 22), Attribution::Near);
        assert_eq!(attribute(268, 290), Attribution::Far);
        assert_eq!(attribute(20, 170), Attribution::HoldsEchoes, "B7: +150 ms on every echo");
        assert_eq!(attribute(0, 170), Attribution::Unknown);
        assert_eq!(KernelFacts::default().attribute(None), Attribution::Unknown);
    }
}
