//! Groups of addresses that one party may well hold (AUD-2).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Peers that one party may well run: those of one IPv4 /16 or one IPv6 /32, or whatever the host names. What is bounded for each group is bounded for that party,
/// however many identities it makes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressGroup(u32);

impl AddressGroup {
    /// Not known, or of no meaning: such a peer stands alone.
    pub const NONE: AddressGroup = AddressGroup(0);

    /// A group that the host numbers by its own rule; 0 is [`NONE`](Self::NONE).
    pub const fn numbered(number: u32) -> AddressGroup {
        AddressGroup(number)
    }

    /// The group of an address: [`NONE`](Self::NONE) for those that mean something in one network only, where nobody hands out addresses to strangers.
    pub fn of(address: IpAddr) -> AddressGroup {
        match address.to_canonical() {
            IpAddr::V4(address) if is_local_v4(address) => AddressGroup::NONE,
            IpAddr::V4(address) => {
                let [a, b, ..] = address.octets();
                AddressGroup(u32::from_be_bytes([0, 0, a, b]))
            }
            IpAddr::V6(address) if is_local_v6(address) => AddressGroup::NONE,
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.octets();
                AddressGroup(u32::from_be_bytes([a, b, c, d]))
            }
        }
    }

    /// Whether the peer stands alone.
    #[inline]
    pub fn is_none(self) -> bool {
        self == AddressGroup::NONE
    }
}

fn is_local_v4(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    let is_shared = a == 100 && b & 0b1100_0000 == 64;
    address.is_private() || address.is_loopback() || address.is_link_local() || address.is_unspecified() || is_shared
}

fn is_local_v6(address: Ipv6Addr) -> bool {
    let first = address.segments()[0];
    let is_unique_local = first & 0xfe00 == 0xfc00;
    let is_link_local = first & 0xffc0 == 0xfe80;
    address.is_loopback() || address.is_unspecified() || is_unique_local || is_link_local
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str) -> AddressGroup {
        AddressGroup::of(address.parse().unwrap())
    }

    #[test]
    fn neighbours_share_a_group_and_strangers_do_not() {
        assert_eq!(of("203.0.113.7"), of("203.0.200.9"));
        assert_eq!(of("203.0.113.7"), of("::ffff:203.0.1.1"), "the same address in IPv6");
        assert_eq!(of("2001:db8:1::1"), of("2001:db8:ffff::2"));
        let apart = ["203.0.113.7", "203.1.113.7", "2001:db8::1", "2001:db9::1"].map(of);
        for (at, group) in apart.iter().enumerate() {
            assert!(!group.is_none() && !apart[..at].contains(group));
        }
    }

    #[test]
    fn addresses_of_one_network_only_make_no_group() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.1.1",
            "169.254.1.1",
            "100.64.0.1",
            "0.0.0.0",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
        ] {
            assert!(of(address).is_none(), "{address}");
        }
    }
}
