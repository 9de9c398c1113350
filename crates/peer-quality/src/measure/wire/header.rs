//! The header of a multiplexer segment (SDU), whose former timestamp word carries two cookies (MEAS-1).
//!
//! Eight bytes, big-endian: send cookie, echo cookie, protocol with the direction bit, payload length. A cookie of 0 means none.
//! A peer that still writes a timestamp there is not recognisable from one header: the host decides whom it runs cookies with.

/// Bytes of a header on the wire.
pub const HEADER_BYTES: usize = 8;

/// The two cookies to write into an outgoing SDU; 0 means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Ours, which the peer is to send back.
    pub send: u16,
    /// The freshest one received from the peer.
    pub echo: u16,
}

/// Which mini-protocol an SDU belongs to, and who started that protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Protocol(u16);

impl Protocol {
    const FROM_RESPONDER: u16 = 0x8000;

    /// Protocol `id`; bits above the lower 15 are dropped.
    pub const fn new(id: u16, from_responder: bool) -> Self {
        let direction = if from_responder { Self::FROM_RESPONDER } else { 0 };
        Protocol(id & !Self::FROM_RESPONDER | direction)
    }

    /// The 15-bit number, the same in both directions.
    pub const fn id(self) -> u16 {
        self.0 & !Self::FROM_RESPONDER
    }

    /// Whether the sender of the SDU is the responder of the protocol.
    pub const fn is_from_responder(self) -> bool {
        self.0 & Self::FROM_RESPONDER != 0
    }
}

/// One header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Cookies.
    pub stamp: Stamp,
    /// Protocol and direction.
    pub protocol: Protocol,
    /// Bytes of payload that follow. Zero is a protocol error on the wire, and harmless here.
    pub payload: u16,
}

impl Header {
    /// Reads a header; every eight bytes are one.
    pub const fn from_bytes(bytes: [u8; HEADER_BYTES]) -> Self {
        let [s0, s1, e0, e1, p0, p1, l0, l1] = bytes;
        Header {
            stamp: Stamp { send: u16::from_be_bytes([s0, s1]), echo: u16::from_be_bytes([e0, e1]) },
            protocol: Protocol(u16::from_be_bytes([p0, p1])),
            payload: u16::from_be_bytes([l0, l1]),
        }
    }

    /// Writes the header.
    pub const fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [s0, s1] = self.stamp.send.to_be_bytes();
        let [e0, e1] = self.stamp.echo.to_be_bytes();
        let [p0, p1] = self.protocol.0.to_be_bytes();
        let [l0, l1] = self.payload.to_be_bytes();
        [s0, s1, e0, e1, p0, p1, l0, l1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_wire() {
        let header = Header {
            stamp: Stamp { send: 0x1234, echo: 0xFFFE },
            protocol: Protocol::new(19, true),
            payload: u16::MAX,
        };
        assert_eq!(header.to_bytes(), [0x12, 0x34, 0xFF, 0xFE, 0x80, 19, 0xFF, 0xFF]);
        assert_eq!(Header::from_bytes(header.to_bytes()), header);
        assert_eq!((header.protocol.id(), header.protocol.is_from_responder()), (19, true));
        assert_eq!(Protocol::new(u16::MAX, false).id(), 0x7FFF);
    }
}
