//! The figure of one run that a check is about.
//!
//! Every figure is none where the run has nothing to say about it (nothing was sent, the policy credits no rates): such a check is not met, and shows no value.

use std::collections::BTreeSet;

use crate::model::{Kind, PeerResult, RunResult};
use crate::plan::{Check, What};

use super::quantile::{quantile, sorted};
use super::{Ended, How, Predicted, RunLog, Sent, Viewed};

/// The figure; none for figures over all runs too.
pub(super) fn figure(check: &Check, run: &RunResult, log: &RunLog) -> Option<f64> {
    let view = View::new(check, run, log);
    if !view.opened {
        // What is to be rare after a number of ends or failures of a group is not there at all where those never came.
        let rare = matches!(check.what, What::BytesShare | What::RequestsShare | What::FailuresPerMin);
        let waits = check.after_ends.is_some() || check.after_failures.is_some();
        return (rare && waits).then_some(0.0);
    }
    match check.what {
        What::BytesShare if view.whole() => {
            let bytes = |peers: &mut dyn Iterator<Item = &PeerResult>| peers.map(|peer| peer.bytes as f64).sum();
            share(bytes(&mut view.group()), bytes(&mut run.peers.iter()))
        }
        What::BytesShare => share(view.useful(true), view.useful(false)),
        What::RequestsShare => share(view.sent(true).count() as f64, view.sent(false).count() as f64),
        What::TriedShare => {
            let counts = |group: &String| check.group.as_ref().is_none_or(|wanted| wanted == group);
            let tried: BTreeSet<u32> = view.sent(check.group.is_some()).map(|sent| sent.peer).collect();
            share(tried.len() as f64, run.peers.iter().filter(|peer| counts(&peer.group)).count() as f64)
        }
        What::HostileShare => {
            let hostile = |peer: u32| view.peer(peer).is_some_and(|peer| peer.kind == Some(Kind::Hostile));
            share(
                view.ended(false).filter(|end| hostile(end.peer)).map(|end| end.bytes as f64).sum(),
                view.ended(false).map(|end| end.bytes as f64).sum(),
            )
        }
        What::DuplicateShare if view.whole() => {
            let wasted: f64 = run.peers.iter().map(|peer| peer.wasted_bytes as f64).sum();
            share(wasted, wasted + run.peers.iter().map(|peer| peer.bytes as f64).sum::<f64>())
        }
        What::DuplicateShare => {
            let wasted = view.ended(false).filter(|end| end.how != How::Useful).map(|end| end.bytes as f64).sum();
            share(wasted, view.ended(false).map(|end| end.bytes as f64).sum())
        }
        What::SuccessShare => share(
            view.ended(false).filter(|end| end.how == How::Useful).count() as f64,
            view.ended(false).filter(|end| end.how != How::Dropped).count() as f64,
        ),
        What::Finished => {
            share(run.requests.iter().filter(|one| one.end_s.is_some()).count() as f64, run.requests.len() as f64)
        }
        What::FalseDemotions => {
            let demoted = |peer: &&PeerResult| peer.kind == Some(Kind::Honest) && peer.demoted_at_s.is_some();
            Some(run.peers.iter().filter(demoted).count() as f64)
        }
        What::DemotedShare => {
            share(view.group().filter(|peer| peer.demoted_at_s.is_some()).count() as f64, view.group().count() as f64)
        }
        What::TimeToDemoteS => view.group().map(|peer| peer.demoted_at_s).try_fold(0.0, |last, at| Some(at?.max(last))),
        What::ThroughputShare => {
            let seconds = view.to_s - view.from_s;
            (seconds > 0.0).then(|| view.useful(false) / seconds / check.of.unwrap_or(f64::NAN))
        }
        // Who credits others and nobody of the group overrates nobody there.
        What::CreditedOverTrue => largest(view.group().filter_map(credited_over_true))
            .or_else(|| run.peers.iter().any(|peer| peer.credited_rate.is_some()).then_some(0.0)),
        What::EstimateError => largest(view.group().filter_map(credited_over_true).map(|ratio| (ratio - 1.0).abs())),
        What::Trust => view.group().filter_map(|peer| peer.trust).reduce(f64::min),
        What::PredictionError => {
            let error = |one: &Predicted| (one.expected_s - one.took_s).abs() / one.took_s;
            quantile(&sorted(log.predicted.iter().map(error).collect()), 0.5)
        }
        What::FirstRequestS => view.sent(true).next().map(|sent| sent.at_s - view.from_s),
        What::LongestHoldS => largest(view.ended(true).map(|end| end.held_s)).or(Some(0.0)),
        What::InFlightMax => Some(view.in_flight().0),
        What::InFlightMean => Some(view.in_flight().1),
        What::FailuresPerMin => {
            let minutes = (view.to_s - view.from_s) / 60.0;
            let failures = view.ended(check.group.is_some()).filter(|end| end.how == How::Failed).count();
            (minutes > 0.0).then(|| failures as f64 / minutes)
        }
        What::OrderKept => order_kept(&log.viewed, check.from_s?, check.to_s?),
        What::SignalShare => {
            let of_group = |peer: &Option<u32>| check.group.is_none() || peer.is_some_and(|peer| view.in_group(peer));
            let raised = |(name, peer): &(String, Option<u32>)| Some(name) == check.signal.as_ref() && of_group(peer);
            log.signals.as_ref().map(|signals| f64::from(u8::from(signals.iter().any(raised))))
        }
        What::Panics => Some(f64::from(run.panics)),
        _ => None,
    }
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn largest(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::max)
}

fn credited_over_true(peer: &PeerResult) -> Option<f64> {
    peer.credited_rate.filter(|_| peer.true_rate > 0.0).map(|credited| credited / peer.true_rate)
}

/// A run seen through a check's group and window.
struct View<'a> {
    check: &'a Check,
    run: &'a RunResult,
    log: &'a RunLog,
    from_s: f64,
    to_s: f64,
    /// Whether the window opened before the run was over.
    opened: bool,
}

impl<'a> View<'a> {
    fn new(check: &'a Check, run: &'a RunResult, log: &'a RunLog) -> Self {
        let mut view = View { check, run, log, from_s: 0.0, to_s: f64::INFINITY, opened: true };
        let nth = |count: u32, failures: bool| {
            let counts = |end: &&Ended| !failures || end.how == How::Failed;
            let skipped = (count as usize).saturating_sub(1);
            let end = view.ended(check.group.is_some()).filter(counts).nth(skipped);
            end.map_or(f64::INFINITY, |end| end.at_s)
        };
        let whole_requests = check.after_requests.map_or(0.0, |count| {
            let mut ends: Vec<f64> = run.requests.iter().filter_map(|request| request.end_s).collect();
            ends.sort_by(f64::total_cmp);
            ends.get((count as usize).saturating_sub(1)).copied().unwrap_or(f64::INFINITY)
        });
        let from_s = [
            check.from_s.unwrap_or(0.0),
            check.after_ends.map_or(0.0, |count| nth(count, false)),
            check.after_failures.map_or(0.0, |count| nth(count, true)),
            whole_requests,
        ];
        let start = run.requests.first().map_or(0.0, |request| request.start_s);
        let to_s = check.to_s.unwrap_or(start + run.seconds);
        let until = check.until_ends.map_or(f64::INFINITY, |count| nth(count, false));
        view.to_s = to_s.min(until);
        view.from_s = from_s.into_iter().fold(0.0, f64::max);
        view.opened = view.from_s <= view.to_s;
        view
    }

    /// Whether the check is about the whole run, so that the run's own totals say it best.
    fn whole(&self) -> bool {
        let check = self.check;
        let counts = [check.after_ends, check.after_failures, check.after_requests, check.until_ends];
        check.from_s.is_none() && check.to_s.is_none() && counts.iter().all(Option::is_none)
    }

    fn peer(&self, peer: u32) -> Option<&'a PeerResult> {
        self.run.peers.get(peer as usize)
    }

    fn in_group(&self, peer: u32) -> bool {
        self.peer(peer).is_some_and(|peer| Some(&peer.group) == self.check.group.as_ref())
    }

    fn group(&self) -> impl Iterator<Item = &'a PeerResult> {
        self.run.peers.iter().filter(|peer| Some(&peer.group) == self.check.group.as_ref())
    }

    fn within(&self, at_s: f64) -> bool {
        at_s >= self.from_s && at_s <= self.to_s
    }

    fn sent(&self, of_group: bool) -> impl Iterator<Item = &'a Sent> {
        self.log.sent.iter().filter(move |sent| self.within(sent.at_s) && (!of_group || self.in_group(sent.peer)))
    }

    fn ended(&self, of_group: bool) -> impl Iterator<Item = &'a Ended> {
        self.log.ended.iter().filter(move |end| self.within(end.at_s) && (!of_group || self.in_group(end.peer)))
    }

    fn useful(&self, of_group: bool) -> f64 {
        self.ended(of_group).filter(|end| end.how == How::Useful).map(|end| end.bytes as f64).sum()
    }

    /// Most and mean number of ranges in flight within the window.
    fn in_flight(&self) -> (f64, f64) {
        let ours = |peer: u32| self.check.group.is_none() || self.in_group(peer);
        let starts = self.log.sent.iter().filter(|sent| ours(sent.peer)).map(|sent| (sent.at_s, 1.0));
        let ends = self.log.ended.iter().filter(|end| ours(end.peer)).map(|end| (end.at_s, -1.0));
        let mut steps: Vec<(f64, f64)> = starts.chain(ends).collect();
        // Ends come before starts of the same moment: a slot is free before it is used again.
        steps.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let (mut now, mut most, mut sum, mut since) = (0.0f64, 0.0f64, 0.0, self.from_s);
        for (at_s, step) in steps {
            let until = at_s.clamp(self.from_s, self.to_s);
            sum += now * (until - since);
            since = until;
            now += step;
            if self.within(at_s) {
                most = most.max(now);
            }
        }
        let seconds = self.to_s - self.from_s;
        (most, if seconds > 0.0 { (sum + now * (self.to_s - since)) / seconds } else { 0.0 })
    }
}

/// Kendall's tau between the rates credited last before `from_s` and first after `to_s`.
fn order_kept(viewed: &[Viewed], from_s: f64, to_s: f64) -> Option<f64> {
    let mut before = std::collections::BTreeMap::new();
    let mut after = std::collections::BTreeMap::new();
    for view in viewed {
        let Some(rate) = view.credited_rate else { continue };
        if view.at_s <= from_s {
            before.insert(view.peer, rate);
        } else if view.at_s >= to_s {
            after.entry(view.peer).or_insert(rate);
        }
    }
    let pairs: Vec<(f64, f64)> =
        before.iter().filter_map(|(peer, before)| Some((*before, *after.get(peer)?))).collect();
    let (mut agree, mut compared) = (0.0, 0.0);
    for (index, one) in pairs.iter().enumerate() {
        for other in &pairs[index + 1..] {
            let sign = (one.0 - other.0) * (one.1 - other.1);
            // Peers that were alike before have no order to keep.
            if (one.0 / other.0 - 1.0).abs() > 0.1 {
                agree += if sign > 0.0 { 1.0 } else { -1.0 };
                compared += 1.0;
            }
        }
    }
    (compared > 0.0).then(|| agree / compared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{PLAN, Toy};
    use crate::report::{Bench, RunLog};

    /// Every figure, about every window: also one that opens after the run is over, or closes before it opens.
    #[test]
    fn a_figure_is_a_number_or_none_for_every_window() {
        let plan = crate::plan::parse("toy.toml", PLAN).unwrap();
        let mut log = RunLog::default();
        let whole = Toy.run(&plan.world, &plan.workload, "peerq", 1, &mut log).unwrap();
        let never = RunResult { peers: whole.peers.clone(), ..RunResult::default() };
        let whats = [
            What::BytesShare,
            What::RequestsShare,
            What::TriedShare,
            What::HostileShare,
            What::DuplicateShare,
            What::SuccessShare,
            What::Finished,
            What::ThroughputShare,
            What::LongestHoldS,
            What::FirstRequestS,
            What::InFlightMax,
            What::InFlightMean,
            What::FailuresPerMin,
        ];
        let seconds = [None, Some(0.0), Some(50.0), Some(1e9)];
        for (run, log) in [(&whole, &log), (&whole, &RunLog::default()), (&never, &RunLog::default())] {
            for what in whats {
                for from_s in seconds {
                    for to_s in seconds {
                        let group = Some("bad".to_owned());
                        let check = Check { what, from_s, to_s, group, of: Some(1.0), ..plan.checks[1].clone() };
                        let value = figure(&check, run, log);
                        assert!(value.is_none_or(f64::is_finite), "{what:?} {from_s:?} {to_s:?}: {value:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_waits_for_an_end_that_never_comes_says_nothing() {
        let plan = crate::plan::parse("toy.toml", PLAN).unwrap();
        let run = RunResult { seconds: 10.0, ..RunResult::default() };
        let group = Some("bad".to_owned());
        let late = Check { what: What::InFlightMax, group, after_ends: Some(3), ..plan.checks[1].clone() };
        assert_eq!(figure(&late, &run, &RunLog::default()), None);
        let rare = Check { what: What::BytesShare, ..late };
        assert_eq!(figure(&rare, &run, &RunLog::default()), Some(0.0));
    }
}
