//! Addresses of one peer, packed: a registry remembers many more than it dials.
//!
//! The one idea: what is read of them at each selection is whether they are still the same, so they lie in one run of bytes, each as its kind, port and length in
//! front of its host, and become addresses again only for whoever dials. One short address, which is what most peers have, needs no memory of its own.

use dig_dht::{AddressKind, CandidateAddr};

/// Bytes in front of a host: kind, nothing, port, length.
const HEADER: usize = 8;

const KINDS: [AddressKind; 4] = [AddressKind::Direct, AddressKind::Mapped, AddressKind::Reflexive, AddressKind::Relay];

/// Bytes that lie in the record itself: an address with a host of fourteen characters, such as an IPv4 one.
const FEW: usize = 22;

/// See the module documentation.
#[derive(Clone, Debug)]
pub(crate) enum Hints {
    Few { length: u8, bytes: [u8; FEW] },
    Many(Box<[u8]>),
}

impl Default for Hints {
    fn default() -> Self {
        Hints::Few { length: 0, bytes: [0; FEW] }
    }
}

impl Hints {
    /// These addresses, in this order.
    pub(crate) fn of(addresses: &[CandidateAddr]) -> Hints {
        let total: usize = addresses.iter().map(|address| HEADER + address.host.len()).sum();
        let pack = |mut rest: &mut [u8]| {
            for address in addresses {
                let (head, tail) = rest.split_at_mut(HEADER);
                let (host, tail) = tail.split_at_mut(address.host.len());
                head.copy_from_slice(&header(address));
                host.copy_from_slice(address.host.as_bytes());
                rest = tail;
            }
        };
        if total > FEW {
            let mut bytes = vec![0; total].into_boxed_slice();
            pack(&mut bytes);
            return Hints::Many(bytes);
        }
        let mut bytes = [0; FEW];
        pack(&mut bytes[..total]);
        Hints::Few { length: total as u8, bytes }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Hints::Few { length, bytes } => &bytes[..usize::from(*length).min(FEW)],
            Hints::Many(bytes) => bytes,
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Whether they begin with these.
    #[inline]
    pub(crate) fn starts_with(&self, addresses: &[CandidateAddr]) -> bool {
        let mut rest = self.bytes();
        addresses.iter().all(|address| {
            let Some((head, tail)) = rest.split_first_chunk::<HEADER>() else { return false };
            let Some((host, tail)) = tail.split_at_checked(address.host.len()) else { return false };
            rest = tail;
            u64::from_le_bytes(*head) == u64::from_le_bytes(header(address)) && host == address.host.as_bytes()
        })
    }

    /// The addresses again.
    pub(crate) fn unpacked(&self) -> Vec<CandidateAddr> {
        let (mut addresses, mut rest) = (Vec::new(), self.bytes());
        while let Some((&[kind, _, low, high, a, b, c, d], tail)) = rest.split_first_chunk::<HEADER>() {
            let (host, tail) = tail.split_at(tail.len().min(u32::from_le_bytes([a, b, c, d]) as usize));
            let kind = KINDS[usize::from(kind) % KINDS.len()];
            let port = u16::from_le_bytes([low, high]);
            addresses.push(CandidateAddr { host: String::from_utf8_lossy(host).into_owned(), port, kind });
            rest = tail;
        }
        addresses
    }
}

fn header(address: &CandidateAddr) -> [u8; HEADER] {
    let [low, high] = address.port.to_le_bytes();
    // No host in memory is longer than its length can say.
    let [a, b, c, d] = (address.host.len() as u32).to_le_bytes();
    [address.kind as u8, 0, low, high, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Vec<CandidateAddr> {
        let hosts = ["203.0.113.9", "", "2001:db8::1", "host.example"];
        let address = |(kind, host): (AddressKind, &str)| CandidateAddr { host: host.into(), port: 65_000, kind };
        KINDS.into_iter().zip(hosts).map(address).collect()
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        assert_eq!(Hints::of(&addresses()).unpacked(), addresses());
        assert_eq!(Hints::default().unpacked(), []);
    }

    #[test]
    fn they_begin_with_themselves_and_with_nothing_else() {
        let (hints, all) = (Hints::of(&addresses()), addresses());
        for count in 0..=all.len() {
            assert!(hints.starts_with(&all[..count]));
        }
        for at in 0..all.len() {
            let mut others = addresses();
            others[at].port = 1;
            assert!(!hints.starts_with(&others));
            others = addresses();
            others[at].host.push('x');
            assert!(!hints.starts_with(&others));
            others = addresses();
            others[at].kind = KINDS[(at + 1) % KINDS.len()];
            assert!(!hints.starts_with(&others));
        }
        assert!(!hints.starts_with(&[all.clone(), all].concat()));
    }
}
