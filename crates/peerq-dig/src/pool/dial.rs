//! Dialling one peer at one of several addresses (HOST-D2).
//!
//! The one idea: addresses start a little after one another and race, so that a dead one costs a fraction of a second, not
//! its time-out (after RFC 8305); the caller's order is kept as the order of starts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dig_nat::PeerId;
use dig_nat::mux::PeerSession;
use dig_tls::BindingPolicy;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::io::{BufReader, BufWriter};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::PoolError;
use crate::identity::Identity;
use crate::link::Socket;

/// Most addresses tried for one peer; a longer list is cut, lest one record makes this node a connection storm.
const MAX_ADDRESSES: usize = 4;
/// How long an address has for itself before the next one starts; RFC 8305 section 8 recommends this value.
const HEAD_START: Duration = Duration::from_millis(250);
/// Read buffer below TLS, bytes: rustls asks for 4 KiB at a time, the socket gives more.
pub(crate) const READ_BUFFER_BYTES: usize = 64 * 1024;
/// Write buffer above TLS, bytes: joins a multiplexer frame's header and body into one record.
pub(crate) const WRITE_BUFFER_BYTES: usize = 32 * 1024;

/// A new connection.
pub(super) struct Dialled {
    /// The address that answered.
    pub(super) addr: SocketAddr,
    /// Cuts the connection.
    pub(super) socket: Socket,
    pub(super) session: PeerSession,
}

/// Connects to `peer` at the first of `addrs` that proves to be it.
pub(super) async fn dial(
    identity: &Identity,
    peer: PeerId,
    addrs: &[SocketAddr],
    timeout: Duration,
) -> Result<Dialled, PoolError> {
    let mut waiting = addrs.iter().take(MAX_ADDRESSES);
    let mut racing = FuturesUnordered::new();
    let mut worst = PoolError::NoAddress { peer };
    loop {
        if let Some(addr) = waiting.next() {
            racing.push(dial_one(identity, peer, *addr, timeout));
        }
        let more = waiting.len() > 0;
        tokio::select! {
            outcome = racing.next() => match outcome {
                Some(Ok(connected)) => return Ok(connected),
                Some(Err(error)) => worst = worst.or_worse(error),
                None => return Err(worst),
            },
            () = tokio::time::sleep(HEAD_START), if more => {}
        }
    }
}

async fn dial_one(
    identity: &Identity,
    peer: PeerId,
    addr: SocketAddr,
    timeout: Duration,
) -> Result<Dialled, PoolError> {
    tokio::time::timeout(timeout, connect(identity, peer, addr)).await.unwrap_or(Err(PoolError::Timeout {
        peer,
        doing: "answering a connection",
        after: timeout,
    }))
}

async fn connect(identity: &Identity, peer: PeerId, addr: SocketAddr) -> Result<Dialled, PoolError> {
    let unreachable = |source| PoolError::Unreachable { peer, addr, source: Arc::new(source) };
    let handshake = |source| PoolError::Handshake { peer, addr, source: Arc::new(source) };
    let tcp = TcpStream::connect(addr).await.map_err(unreachable)?;
    // With Nagle's delay a small request waits for the acknowledgement of the one before: 40 ms a range.
    tcp.set_nodelay(true).map_err(unreachable)?;
    let socket = Socket::new(tcp);
    let tls = dig_tls::client_config_spki_pinned(identity.cert(), Some(peer), BindingPolicy::Opportunistic)
        .map_err(|error| handshake(std::io::Error::other(error)))?;
    // Peers are told apart by key; the name only has to be one.
    let name = ServerName::try_from("peer.dig.invalid").map_err(|error| handshake(std::io::Error::other(error)))?;
    let stream = TlsConnector::from(tls.config)
        .connect(name, BufReader::with_capacity(READ_BUFFER_BYTES, socket.clone()))
        .await
        .map_err(|error| match tls.captured_peer_id.get() {
            Some(found) if found != peer => PoolError::WrongPeer { addr, expected: peer, found },
            _ => handshake(error),
        })?;
    let session = PeerSession::client(BufWriter::with_capacity(WRITE_BUFFER_BYTES, stream));
    Ok(Dialled { addr, socket, session })
}
