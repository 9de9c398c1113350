//! A run over time, condensed into a fixed number of bins, for plots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{Kind, RunResult};

use super::quantile::rounded;
use super::{How, RunLog};

/// Bins of a series: about as many as a phone's screen can show apart.
const BINS: usize = 60;

/// Most groups that are kept apart; the plans have far fewer.
const MAX_GROUPS: usize = 16;

/// A run over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Width of a bin, virtual seconds.
    pub bin_s: f64,
    /// The groups, in the order of the world.
    pub groups: Vec<GroupSeries>,
}

/// One group over time; a value per bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSeries {
    /// Its name.
    pub name: String,
    /// Which side it is on, where that is known.
    pub kind: Option<Kind>,
    /// Useful bytes.
    pub bytes: Vec<u64>,
    /// Mean rate its peers were credited with, bytes per second; none while nothing is known.
    pub credited: Vec<Option<f64>>,
    /// Share of its peers that were demoted.
    pub demoted: Vec<f64>,
}

impl Series {
    /// The series of a run.
    pub fn of(run: &RunResult, log: &RunLog) -> Series {
        let start_s = run.requests.first().map_or(0.0, |request| request.start_s);
        let bin_s = if run.seconds > 0.0 { run.seconds / BINS as f64 } else { 1.0 };
        let bin = |at_s: f64| (((at_s - start_s) / bin_s).max(0.0) as usize).min(BINS - 1);
        let mut groups: Vec<GroupSeries> = Vec::new();
        let mut place = BTreeMap::new();
        for (index, peer) in run.peers.iter().enumerate() {
            let known = groups.iter().position(|group| group.name == peer.group);
            let at = known.unwrap_or_else(|| {
                if groups.len() < MAX_GROUPS {
                    groups.push(GroupSeries {
                        name: peer.group.clone(),
                        kind: peer.kind,
                        bytes: vec![0; BINS],
                        credited: vec![None; BINS],
                        demoted: vec![0.0; BINS],
                    });
                }
                groups.len() - 1
            });
            place.insert(index as u32, at);
        }
        for end in log.ended.iter().filter(|end| end.how == How::Useful) {
            if let Some(&at) = place.get(&end.peer) {
                groups[at].bytes[bin(end.at_s)] += end.bytes;
            }
        }
        standing(&mut groups, &place, log, bin);
        Series { bin_s: rounded(bin_s), groups }
    }
}

/// The last view of each peer in each bin, carried forward, and averaged over the group.
fn standing(groups: &mut [GroupSeries], place: &BTreeMap<u32, usize>, log: &RunLog, bin: impl Fn(f64) -> usize) {
    let mut last = BTreeMap::new();
    let mut views = log.viewed.iter().peekable();
    for now in 0..BINS {
        while let Some(view) = views.next_if(|view| bin(view.at_s) <= now) {
            last.insert(view.peer, (view.credited_rate, view.demoted));
        }
        for (at, group) in groups.iter_mut().enumerate() {
            let of_group = || last.iter().filter(|(peer, _)| place.get(peer) == Some(&at)).map(|(_, view)| view);
            let rates: Vec<f64> = of_group().filter_map(|view| view.0).collect();
            let seen = of_group().count();
            if !rates.is_empty() {
                group.credited[now] = Some(rounded(rates.iter().sum::<f64>() / rates.len() as f64));
            }
            if seen > 0 {
                group.demoted[now] = rounded(of_group().filter(|view| view.1).count() as f64 / seen as f64);
            }
        }
    }
}
