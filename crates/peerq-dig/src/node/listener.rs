//! Accepts connections and their streams (HOST-D4).
//!
//! The one idea: connections, streams and handshakes each have a limit, and what is beyond it waits in order instead of
//! being dropped, since a dropped stream looks to the other side like an answer of nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::{io, pin::pin};

use dig_nat::PeerId;
use dig_nat::mux::PeerSession;
use dig_tls::BindingPolicy;
use tokio::io::{BufReader, BufWriter};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::{Shared, answer};
use crate::link::{LinkStream, Switch};
use crate::pool::{READ_BUFFER_BYTES, WRITE_BUFFER_BYTES};

/// Most connections at once; more wait in the operating system's queue.
const CONNECTIONS_MAX: usize = 512;
/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a connection without a stream is kept. Peers dial anew without noticing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// How long the rest of a connection may take to leave when it is closed.
const GRACE: Duration = Duration::from_secs(3);
/// How long answers in flight may take to end when the node shuts down.
const SHUTDOWN: Duration = Duration::from_secs(5);
/// Pause after a failed accept: out of file descriptors, which takes others to change.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the node stops, then waits for the answers in flight.
pub(super) async fn run(shared: Arc<Shared>, listener: TcpListener) {
    let limit = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    let mut stopped = pin!(shared.stopped());
    loop {
        tokio::select! {
            () = &mut stopped => break,
            accepted = accept(&listener, &limit) => match accepted {
                Ok((tcp, addr, place)) => {
                    let shared = Arc::clone(&shared);
                    connections.spawn(async move {
                        if let Err(error) = connection(shared, tcp).await {
                            tracing::debug!(%addr, %error, "a connection ended");
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections for the moment");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    let ending = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(SHUTDOWN, ending).await;
}

async fn accept(
    listener: &TcpListener,
    limit: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(limit).acquire_owned().await.map_err(io::Error::other)?;
    let (tcp, addr) = listener.accept().await?;
    Ok((tcp, addr, place))
}

async fn connection(shared: Arc<Shared>, tcp: TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let (stream, switch) = shared.link.attach(tcp);
    let registered = shared.switches.add(switch.clone());
    let (peer, session) = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake(&shared, stream))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    shared.counters.connections.fetch_add(1, Relaxed);
    let closed = session.closed_handle();
    streams(&shared, peer, session, switch).await;
    // A peer that does not read what is left for it is cut off.
    if tokio::time::timeout(GRACE, closed.closed()).await.is_ok() {
        registered.ended();
    }
    Ok(())
}

async fn handshake(shared: &Shared, stream: LinkStream) -> io::Result<(PeerId, PeerSession)> {
    // One configuration per connection: its verifier stores who connected.
    let tls = dig_tls::server_config_spki_pinned(shared.identity.cert(), BindingPolicy::Opportunistic)
        .map_err(io::Error::other)?;
    let stream = TlsAcceptor::from(tls.config).accept(BufReader::with_capacity(READ_BUFFER_BYTES, stream)).await?;
    let peer = tls.captured_peer_id.get().ok_or_else(|| io::Error::other("the peer has no certificate"))?;
    Ok((peer, PeerSession::server(BufWriter::with_capacity(WRITE_BUFFER_BYTES, stream))))
}

/// Answers the streams of one connection. The multiplexer bounds their number and loses streams that are not accepted at
/// once, so each gets a task here and waits there.
async fn streams(shared: &Arc<Shared>, peer: PeerId, mut session: PeerSession, switch: Switch) {
    let mut answers = JoinSet::new();
    let mut stopped = pin!(shared.stopped());
    loop {
        tokio::select! {
            () = &mut stopped => break,
            stream = session.accept_stream() => match stream {
                Some(stream) => {
                    answers.spawn(answer::answer(Arc::clone(shared), peer, stream, switch.clone()));
                }
                None => break,
            },
            Some(ended) = answers.join_next() => {
                if let Ok(Err(error)) = ended {
                    tracing::debug!(peer = %peer.to_hex(), %error, "a stream ended");
                }
            }
            () = tokio::time::sleep(IDLE_TIMEOUT), if answers.is_empty() => break,
        }
    }
    if *shared.stop.borrow() {
        while answers.join_next().await.is_some() {}
    }
}
