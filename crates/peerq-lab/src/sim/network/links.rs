//! Max-min fair shares of the links that several peers' bytes pass: a shared link of their group (a relay, a Sybil's one uplink) and the client's downlink (LAB-1).
//!
//! The one idea: shares change only when somebody starts or stops, so they are computed then, and only among those who pass a link that is full. A peer's own uplink is
//! its demand, not a link, because nobody else passes it.

/// Slack within which a link counts as full.
const FULL: f64 = 1.0 - 1e-9;

/// The links and who passes them now.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    capacity: Vec<f64>,
    /// The links a peer's bytes pass, at most two.
    paths: Vec<[Option<u32>; 2]>,
    demand: Vec<f64>,
    rate: Vec<f64>,
    /// Who demands something, by link.
    active: Vec<Vec<u32>>,
    /// Whether somebody gets less than demanded, by link.
    tight: Vec<bool>,
    downlink: Option<u32>,
    order: Vec<u32>,
    left: Vec<f64>,
    count: Vec<u32>,
    full: Vec<bool>,
}

impl Links {
    /// Shared links of these rates, a downlink, and which shared link each peer's bytes pass.
    pub(crate) fn new(shared: &[f64], downlink: Option<f64>, shares: impl Iterator<Item = Option<usize>>) -> Self {
        let capacity: Vec<f64> = shared.iter().copied().chain(downlink).collect();
        let last = downlink.map(|_| shared.len() as u32);
        let paths: Vec<_> = shares.map(|share| [share.map(|link| link as u32), last]).collect();
        let (peers, links) = (paths.len(), capacity.len());
        Links {
            capacity,
            paths,
            demand: vec![0.0; peers],
            rate: vec![0.0; peers],
            active: vec![Vec::new(); links],
            tight: vec![false; links],
            downlink: last,
            order: Vec::new(),
            left: vec![0.0; links],
            count: vec![0; links],
            full: vec![false; links],
        }
    }

    /// Bytes per second that a peer gets.
    pub(crate) fn rate(&self, peer: u32) -> f64 {
        self.rate[peer as usize]
    }

    /// Bytes per second that a peer alone could get.
    pub(crate) fn most(&self, peer: u32) -> f64 {
        self.paths[peer as usize]
            .into_iter()
            .flatten()
            .map(|link| self.capacity[link as usize])
            .fold(f64::INFINITY, f64::min)
    }

    /// A peer now demands this rate (0 is nothing). Other peers whose share this changes are added to `changed`.
    pub(crate) fn demand(&mut self, peer: u32, rate: f64, changed: &mut Vec<u32>) {
        let path = self.paths[peer as usize];
        let before = std::mem::replace(&mut self.demand[peer as usize], rate);
        if path == [None, None] {
            self.rate[peer as usize] = rate;
            return;
        }
        if before == rate {
            return;
        }
        for link in path.into_iter().flatten() {
            let active = &mut self.active[link as usize];
            match active.binary_search(&peer) {
                Ok(at) if rate == 0.0 => drop(active.remove(at)),
                Err(at) if rate > 0.0 => active.insert(at, peer),
                _ => {}
            }
        }
        if self.is_slack(path) {
            self.rate[peer as usize] = rate;
            return;
        }
        self.rate[peer as usize] = 0.0;
        self.share(path, peer, changed);
    }

    /// Whether nobody on these links was or is limited.
    fn is_slack(&self, path: [Option<u32>; 2]) -> bool {
        path.into_iter().flatten().all(|link| {
            let active = &self.active[link as usize];
            let total: f64 = active.iter().map(|peer| self.demand[*peer as usize]).sum();
            !self.tight[link as usize] && total <= self.capacity[link as usize] * FULL
        })
    }

    /// Progressive filling: everyone's rate rises together until a demand is met or a link is full.
    fn share(&mut self, path: [Option<u32>; 2], cause: u32, changed: &mut Vec<u32>) {
        let scope = self.downlink.or(path[0]).unwrap_or_default() as usize;
        self.order.clear();
        self.order.extend_from_slice(&self.active[scope]);
        self.left.copy_from_slice(&self.capacity);
        for (link, active) in self.active.iter().enumerate() {
            self.count[link] = active.len() as u32;
            if self.downlink.is_some() || link == scope {
                self.tight[link] = false;
            }
        }
        let mut order = std::mem::take(&mut self.order);
        while !order.is_empty() {
            // The least fair share of any link: whoever demands no more can be served in full. Otherwise those on the fullest link get exactly that.
            let mut least = f64::INFINITY;
            for (link, count) in self.count.iter().enumerate() {
                if *count > 0 && (self.downlink.is_some() || link == scope) {
                    least = least.min(self.left[link] / f64::from(*count));
                }
            }
            let before = order.len();
            order.retain(|peer| {
                let demand = self.demand[*peer as usize];
                let met = demand <= least;
                if met {
                    self.settle(*peer, demand, cause, changed);
                }
                !met
            });
            if order.len() < before {
                continue;
            }
            for link in 0..self.capacity.len() {
                let in_scope = self.count[link] > 0 && (self.downlink.is_some() || link == scope);
                self.full[link] = in_scope && self.left[link] / f64::from(self.count[link]) <= least * (1.0 + 1e-12);
                self.tight[link] |= self.full[link];
            }
            order.retain(|peer| {
                let stuck = self.paths[*peer as usize].into_iter().flatten().any(|link| self.full[link as usize]);
                if stuck {
                    self.settle(*peer, least, cause, changed);
                }
                !stuck
            });
        }
        self.order = order;
    }

    fn settle(&mut self, peer: u32, rate: f64, cause: u32, changed: &mut Vec<u32>) {
        for link in self.paths[peer as usize].into_iter().flatten() {
            self.left[link as usize] = (self.left[link as usize] - rate).max(0.0);
            self.count[link as usize] -= 1;
        }
        let before = std::mem::replace(&mut self.rate[peer as usize], rate);
        if peer != cause && (before - rate).abs() > 1e-9 * rate {
            changed.push(peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(links: &mut Links, demands: &[f64]) -> Vec<f64> {
        let mut changed = Vec::new();
        for (peer, demand) in demands.iter().enumerate() {
            links.demand(peer as u32, *demand, &mut changed);
        }
        (0..demands.len() as u32).map(|peer| links.rate(peer)).collect()
    }

    #[test]
    fn small_demands_are_met_and_the_rest_share_evenly() {
        let mut links = Links::new(&[], Some(100.0), [None; 3].into_iter());
        assert_eq!(rates(&mut links, &[10.0, 80.0, 80.0]), [10.0, 45.0, 45.0]);
        let mut changed = Vec::new();
        links.demand(1, 0.0, &mut changed);
        assert_eq!((changed, links.rate(2)), (vec![2], 80.0));
    }

    #[test]
    fn a_shared_link_limits_its_own_before_the_downlink_limits_all() {
        // A6's variant: four mirrors share 20, one independent has 5, the downlink has 24.
        let mut links = Links::new(&[20.0], Some(24.0), [Some(0), Some(0), Some(0), Some(0), None].into_iter());
        let got = rates(&mut links, &[20.0, 20.0, 20.0, 20.0, 5.0]);
        assert!((got.iter().sum::<f64>() - 24.0).abs() < 1e-9);
        assert!(got[..4].iter().all(|rate| (rate - 4.8).abs() < 1e-9) && (got[4] - 4.8).abs() < 1e-9, "{got:?}");
        let mut wide = Links::new(&[20.0], Some(1000.0), [Some(0), Some(0), Some(0), Some(0), None].into_iter());
        assert_eq!(rates(&mut wide, &[20.0, 20.0, 20.0, 20.0, 5.0]), [5.0, 5.0, 5.0, 5.0, 5.0]);
    }

    #[test]
    fn no_link_carries_more_than_it_can_and_nobody_gets_more_than_demanded() {
        let mut stream = crate::sim::Stream::new(11, "test", "links", 0);
        for _ in 0..300 {
            let shared = [stream.between(1.0, 50.0), stream.between(1.0, 50.0)];
            let downlink = stream.happens(0.5).then(|| stream.between(1.0, 80.0));
            let shares: Vec<_> = (0..9).map(|_| [None, Some(0), Some(1)][(stream.unit() * 3.0) as usize]).collect();
            let mut links = Links::new(&shared, downlink, shares.iter().copied());
            let mut changed = Vec::new();
            let mut demands = [0.0; 9];
            for _ in 0..40 {
                let peer = (stream.unit() * 9.0) as usize;
                demands[peer] = if stream.happens(0.3) { 0.0 } else { stream.between(0.1, 30.0) };
                links.demand(peer as u32, demands[peer], &mut changed);
                let rate = |peer: usize| links.rate(peer as u32);
                assert!((0..9).all(|peer| rate(peer) <= demands[peer] * (1.0 + 1e-9)));
                for (link, capacity) in shared.iter().enumerate() {
                    let total: f64 = (0..9).filter(|peer| shares[*peer] == Some(link)).map(rate).sum();
                    assert!(total <= capacity * (1.0 + 1e-9));
                }
                let total: f64 = (0..9).map(rate).sum();
                assert!(downlink.is_none_or(|capacity| total <= capacity * (1.0 + 1e-9)));
                // Max-min: whoever gets less than demanded passes a full link on which nobody gets more.
                for peer in (0..9).filter(|peer| rate(*peer) < demands[*peer] * (1.0 - 1e-6)) {
                    let full = |members: &dyn Fn(usize) -> bool, capacity: f64| {
                        let on: Vec<_> = (0..9).filter(|other| members(*other)).collect();
                        let total: f64 = on.iter().map(|other| rate(*other)).sum();
                        total > capacity * (1.0 - 1e-6)
                            && on.iter().all(|other| rate(*other) <= rate(peer) * (1.0 + 1e-6))
                    };
                    let by_shared =
                        shares[peer].is_some_and(|link| full(&|other| shares[other] == Some(link), shared[link]));
                    let by_downlink = downlink.is_some_and(|capacity| full(&|_| true, capacity));
                    assert!(by_shared || by_downlink, "{peer}: {} of {}", rate(peer), demands[peer]);
                }
            }
        }
    }
}
