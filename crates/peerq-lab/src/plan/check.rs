//! Pass marks: one figure of a run or of all runs, and the bound it has to keep.
//!
//! The one idea: the set of figures is closed. A plan says which of them it is about and how much is enough; how each is computed is the laboratory's business
//! and the same for every plan.

use serde::{Deserialize, Serialize};

/// One pass mark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Which figure.
    pub what: What,
    /// Whose; the product's own policy where absent.
    pub policy: Option<String>,
    /// About which group of peers.
    pub group: Option<String>,
    /// Only what happens from this virtual second on.
    pub from_s: Option<f64>,
    /// Only what happens before this virtual second.
    pub to_s: Option<f64>,
    /// Only what happens after this many ends (of any kind) of ranges at the group.
    pub after_ends: Option<u32>,
    /// Only what happens after this many failures of the group.
    pub after_failures: Option<u32>,
    /// Only what happens after this many whole requests have ended.
    pub after_requests: Option<u32>,
    /// Only what happens before this many ends of ranges at the group.
    pub until_ends: Option<u32>,
    /// What a throughput is compared with, bytes per second.
    pub of: Option<f64>,
    /// The policy that this one is compared with.
    pub rival: Option<String>,
    /// Name of the signal looked for.
    pub signal: Option<String>,
    /// How the figures of the seeds become one; a figure over all runs needs none.
    #[serde(default)]
    pub take: Take,
    /// Largest value that passes.
    pub at_most: Option<f64>,
    /// Smallest value that passes.
    pub at_least: Option<f64>,
}

impl Check {
    /// A check of a figure, without a bound yet.
    pub(super) fn about(what: What) -> Check {
        Check {
            what,
            policy: None,
            group: None,
            from_s: None,
            to_s: None,
            after_ends: None,
            after_failures: None,
            after_requests: None,
            until_ends: None,
            of: None,
            rival: None,
            signal: None,
            take: Take::default(),
            at_most: None,
            at_least: None,
        }
    }
}

/// How figures of single runs become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Take {
    /// Their mean.
    #[default]
    Mean,
    /// The middle one.
    Median,
    /// The one furthest from passing.
    Worst,
}

/// The figures a check can be about. Shares and ratios are fractions, times are virtual seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Median completion time of requests, over all seeds.
    P50S,
    /// Its 95th percentile.
    P95S,
    /// Its 99th percentile.
    P99S,
    /// Share of requests with a deadline that missed it.
    DeadlineMiss,
    /// Median completion over the yardstick's.
    P50OverYardstick,
    /// 99th percentile over the yardstick's.
    P99OverYardstick,
    /// Median over this policy's own in the control world.
    P50OverControl,
    /// 99th percentile over this policy's own in the control world.
    P99OverControl,
    /// Distance of the rates that this policy credits peers of the group with from those in the control world, over the latter: the middle one of those
    /// credited in both, averaged over the seeds.
    EstimateOverControl,
    /// Median over the rival's.
    P50OverRival,
    /// 99th percentile over the rival's.
    P99OverRival,
    /// Useful bytes from the group over all useful bytes.
    BytesShare,
    /// Ranges sent to the group over all ranges sent.
    RequestsShare,
    /// Peers that a range was sent to over all peers, of the group or in all.
    TriedShare,
    /// Bytes from hostile peers over all bytes.
    HostileShare,
    /// Bytes of no use (duplicate, corrupt, given up) over all bytes.
    DuplicateShare,
    /// Ranges that ended well over all that ended.
    SuccessShare,
    /// Requests that ended over all requests.
    Finished,
    /// Honest peers that were demoted, in number.
    FalseDemotions,
    /// Peers of the group that were demoted, over all of it.
    DemotedShare,
    /// When the last peer of the group was demoted.
    TimeToDemoteS,
    /// Useful bytes per second over [`Check::of`].
    ThroughputShare,
    /// Rate a peer of the group is credited with over its true one, the largest in the group.
    CreditedOverTrue,
    /// Distance of credited over true from 1, the largest in the group.
    EstimateError,
    /// How far the policy trusts what it measured of a peer's rate itself, 0 to 1: the least in the group.
    Trust,
    /// Distance of a fetch's predicted from its actual time, over the actual, at the median.
    PredictionError,
    /// From [`Check::from_s`] to the first range sent to the group.
    FirstRequestS,
    /// Longest time a range stayed at the group.
    LongestHoldS,
    /// Most ranges in flight at once, at the group or over all.
    InFlightMax,
    /// Mean of ranges in flight, at the group or over all.
    InFlightMean,
    /// Failures per minute, of the group or over all.
    FailuresPerMin,
    /// Kendall's tau of the credited rates before and after the window.
    OrderKept,
    /// Share of runs in which the policy raised [`Check::signal`].
    SignalShare,
    /// Panics of the policy, in number.
    Panics,
}

impl What {
    /// Whether it is a figure over all runs rather than one of each run.
    pub fn over_all_runs(self) -> bool {
        self <= What::P99OverRival
    }

    /// The arguments it understands besides policy and bounds: (name, required).
    pub(super) fn arguments(self) -> &'static [(&'static str, bool)] {
        const WINDOW_OF_GROUP: &[(&str, bool)] = &[
            ("group", true),
            ("from_s", false),
            ("to_s", false),
            ("after_ends", false),
            ("after_failures", false),
            ("after_requests", false),
        ];
        const WINDOW: &[(&str, bool)] = &[
            ("group", false),
            ("from_s", false),
            ("to_s", false),
            ("after_ends", false),
            ("after_failures", false),
            ("after_requests", false),
            ("until_ends", false),
        ];
        match self {
            What::P50OverRival | What::P99OverRival => &[("rival", true), ("after_requests", false)],
            What::EstimateOverControl => &[("group", true)],
            what if what.over_all_runs() => &[("after_requests", false)],
            What::BytesShare | What::RequestsShare => WINDOW_OF_GROUP,
            What::HostileShare | What::DuplicateShare | What::SuccessShare => {
                &[("from_s", false), ("to_s", false), ("after_requests", false)]
            }
            What::LongestHoldS | What::FirstRequestS => &[("group", true), ("from_s", false), ("to_s", false)],
            What::InFlightMax | What::InFlightMean | What::FailuresPerMin | What::TriedShare => WINDOW,
            What::DemotedShare | What::TimeToDemoteS | What::CreditedOverTrue | What::EstimateError | What::Trust => {
                &[("group", true)]
            }
            What::ThroughputShare => &[("of", true), ("from_s", false), ("to_s", false)],
            What::OrderKept => &[("from_s", true), ("to_s", true)],
            What::SignalShare => &[("signal", true), ("group", false)],
            _ => &[],
        }
    }
}

impl Check {
    /// The arguments that are given, by name.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("group", self.group.is_some()),
            ("from_s", self.from_s.is_some()),
            ("to_s", self.to_s.is_some()),
            ("after_ends", self.after_ends.is_some()),
            ("after_failures", self.after_failures.is_some()),
            ("after_requests", self.after_requests.is_some()),
            ("until_ends", self.until_ends.is_some()),
            ("of", self.of.is_some()),
            ("rival", self.rival.is_some()),
            ("signal", self.signal.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
    }

    /// Whether a value keeps the bounds; a value that does not exist keeps none.
    pub fn passes(&self, got: Option<f64>) -> bool {
        got.is_some_and(|got| {
            self.at_most.is_none_or(|bound| got <= bound) && self.at_least.is_none_or(|bound| got >= bound)
        })
    }

    /// The figure in words, such as `bytes_share of slow from 5 s`.
    pub fn what_in_words(&self) -> String {
        let mut words = name_of(self.what);
        let mut add = |text: String| {
            words.push(' ');
            words.push_str(&text);
        };
        if let Some(rate) = self.of {
            add(format!("of {rate} B/s"));
        }
        if let Some(group) = &self.group {
            add(format!("of {group}"));
        }
        if let Some(rival) = &self.rival {
            add(format!("against {rival}"));
        }
        if let Some(signal) = &self.signal {
            add(format!("`{signal}`"));
        }
        if let Some(from) = self.from_s {
            add(format!("from {from} s"));
        }
        if let Some(to) = self.to_s {
            add(format!("to {to} s"));
        }
        for (count, of) in
            [(self.after_ends, "ends"), (self.after_failures, "failures"), (self.after_requests, "requests")]
        {
            if let Some(count) = count {
                add(format!("after {count} {of}"));
            }
        }
        if let Some(count) = self.until_ends {
            add(format!("until {count} ends"));
        }
        if !self.what.over_all_runs() && self.take != Take::Mean {
            add(format!("({})", if self.take == Take::Worst { "worst seed" } else { "median seed" }));
        }
        if let Some(policy) = &self.policy {
            add(format!("[{policy}]"));
        }
        words
    }

    /// The bound in words, such as `<= 0.1`.
    pub fn want_in_words(&self) -> String {
        match (self.at_least, self.at_most) {
            (Some(low), Some(high)) => format!("{low} to {high}"),
            (Some(low), None) => format!(">= {low}"),
            (None, Some(high)) => format!("<= {high}"),
            (None, None) => "known".to_owned(),
        }
    }
}

/// The name a plan calls a figure by.
fn name_of(what: What) -> String {
    match serde_json::to_value(what) {
        Ok(serde_json::Value::String(name)) => name,
        _ => format!("{what:?}"),
    }
}
