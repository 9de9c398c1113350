//! The path between a node and everyone else: the plain socket, or a socket behind a link of a given rate and delay
//! (HOST-D4).
//!
//! The one idea: shaping sits below TLS, in the bytes themselves, and all connections of a node share one link, as they
//! would share an uplink. Each direction is a serialising line with its own clock, followed by a delay line; both keep the
//! time at which each piece is due, so that a late timer delays one piece and never the ones after it.

mod lane;
mod pump;
mod socket;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

pub(crate) use lane::Lane;
pub(crate) use socket::Socket;

/// What a node's link is like. The default is unshaped: the plain socket.
///
/// ```
/// use std::time::Duration;
/// use peerq_dig::node::LinkShape;
///
/// let dsl = LinkShape { rate_bytes_per_s: Some(2_000_000), delay: Duration::from_millis(20) };
/// assert!(dsl.is_shaped() && !LinkShape::default().is_shaped());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkShape {
    /// Rate of each direction, bytes per second on the wire, TLS included; `None` for no limit. 0 counts as 1.
    pub rate_bytes_per_s: Option<u64>,
    /// Delay of each direction; a round trip takes twice this.
    pub delay: Duration,
}

impl LinkShape {
    /// Whether the link differs from the plain socket.
    pub fn is_shaped(&self) -> bool {
        self.rate_bytes_per_s.is_some() || !self.delay.is_zero()
    }
}

/// One node's link, shared by all its connections.
///
/// Memory: per connection and direction [`Lane::backlog`] and [`Lane::capacity`], which is about rate × delay. Connections
/// that all send share the line's rate, so together they hold little more than one.
#[derive(Clone)]
pub(crate) struct Link {
    lanes: Option<(Arc<Lane>, Arc<Lane>)>,
}

impl Link {
    pub(crate) fn new(shape: LinkShape) -> Link {
        let lane = || Arc::new(Lane::new(shape.rate_bytes_per_s, shape.delay));
        Link { lanes: shape.is_shaped().then(|| (lane(), lane())) }
    }

    /// Puts the link in front of `tcp`. The switch cuts the connection at once, whatever is still under way.
    pub(crate) fn attach(&self, tcp: TcpStream) -> (LinkStream, Switch) {
        let Some((up, down)) = &self.lanes else {
            let socket = Socket::new(tcp);
            let switch = Switch(Cut::Socket(socket.clone()));
            return (LinkStream(Kind::Plain(socket)), switch);
        };
        let (near, far) = tokio::io::duplex(up.backlog());
        let (from_node, to_node) = tokio::io::split(far);
        let (from_net, to_net) = tcp.into_split();
        let outward = tokio::spawn(pump::run(from_node, to_net, Arc::clone(up)));
        let inward = tokio::spawn(pump::run(from_net, to_node, Arc::clone(down)));
        let switch = Switch(Cut::Pumps([outward.abort_handle(), inward.abort_handle()]));
        (LinkStream(Kind::Shaped(near)), switch)
    }
}

/// Cuts one connection.
#[derive(Clone)]
pub(crate) struct Switch(Cut);

#[derive(Clone)]
enum Cut {
    Socket(Socket),
    Pumps([AbortHandle; 2]),
}

impl Switch {
    /// Cuts the connection now. The other side sees it end; what was under way is lost.
    pub(crate) fn cut(&self) {
        match &self.0 {
            Cut::Socket(socket) => socket.cut(),
            Cut::Pumps(pumps) => pumps.iter().for_each(AbortHandle::abort),
        }
    }
}

/// A node's end of one connection, shaped or not.
pub(crate) struct LinkStream(Kind);

enum Kind {
    Plain(Socket),
    Shaped(DuplexStream),
}

impl fmt::Debug for LinkStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkStream")
    }
}

impl AsyncRead for LinkStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(io) => Pin::new(io).poll_read(cx, buffer),
            Kind::Shaped(io) => Pin::new(io).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for LinkStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Plain(io) => Pin::new(io).poll_write(cx, bytes),
            Kind::Shaped(io) => Pin::new(io).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(io) => Pin::new(io).poll_flush(cx),
            Kind::Shaped(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Kind::Shaped(io) => Pin::new(io).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Plain(io) => Pin::new(io).poll_write_vectored(cx, bytes),
            Kind::Shaped(io) => Pin::new(io).poll_write_vectored(cx, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}
