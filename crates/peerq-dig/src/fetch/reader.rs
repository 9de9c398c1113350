//! A reader that notes when bytes of one answer arrive (MEAS-10, HOST-D2).
//!
//! dig-download's stream reader returns an assembled range and keeps its timing to itself. This wrapper sits under it
//! and stamps the first byte, the last byte and the wire bytes, and whether it was the connection that ended the
//! stream. The stamps are atomics, so that the patience rule can look at a request that is still running.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

/// Payload bytes per wire byte: a frame carries its payload as base64, four characters for three bytes. The JSON around
/// it is below one percent of a full frame.
const PAYLOAD_PER_WIRE: (u64, u64) = (3, 4);

/// Marks "not yet" in a time stamp.
const NEVER: u64 = u64::MAX;

/// Arrival times of one answer, in microseconds since `sent`.
#[derive(Debug)]
pub(super) struct Stamps {
    sent: Instant,
    first: AtomicU64,
    last: AtomicU64,
    wire_bytes: AtomicU64,
    ended: AtomicBool,
}

impl Stamps {
    /// Stamps of a request sent at `sent`.
    pub(super) fn new(sent: Instant) -> Arc<Self> {
        Arc::new(Stamps {
            sent,
            first: AtomicU64::new(NEVER),
            last: AtomicU64::new(NEVER),
            wire_bytes: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        })
    }

    pub(super) fn sent(&self) -> Instant {
        self.sent
    }

    /// Time to first byte.
    pub(super) fn first_byte(&self) -> Option<Duration> {
        stamp(&self.first)
    }

    /// Time of the last byte so far, since the request.
    pub(super) fn last_byte(&self) -> Option<Duration> {
        stamp(&self.last)
    }

    /// Payload bytes so far, estimated from the wire bytes.
    pub(super) fn payload_bytes(&self) -> u64 {
        self.wire_bytes.load(Relaxed).saturating_mul(PAYLOAD_PER_WIRE.0) / PAYLOAD_PER_WIRE.1
    }

    /// Whether the connection failed or the stream ended while it was being read.
    pub(super) fn connection_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    fn arrived(&self, bytes: usize) {
        let at = u64::try_from(self.sent.elapsed().as_micros()).unwrap_or(NEVER - 1).min(NEVER - 1);
        let _ = self.first.compare_exchange(NEVER, at, Relaxed, Relaxed);
        self.last.store(at, Relaxed);
        self.wire_bytes.fetch_add(bytes as u64, Relaxed);
    }
}

fn stamp(at: &AtomicU64) -> Option<Duration> {
    match at.load(Relaxed) {
        NEVER => None,
        micros => Some(Duration::from_micros(micros)),
    }
}

/// `R` with its arrivals stamped.
pub(super) struct StampedReader<R> {
    inner: R,
    stamps: Arc<Stamps>,
}

impl<R> StampedReader<R> {
    pub(super) fn new(inner: R, stamps: Arc<Stamps>) -> Self {
        StampedReader { inner, stamps }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for StampedReader<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (before, room) = (buf.filled().len(), buf.remaining());
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        match &polled {
            Poll::Ready(Ok(())) => match buf.filled().len() - before {
                0 if room > 0 => self.stamps.ended.store(true, Relaxed),
                0 => {}
                bytes => self.stamps.arrived(bytes),
            },
            Poll::Ready(Err(_)) => self.stamps.ended.store(true, Relaxed),
            Poll::Pending => {}
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn first_and_last_byte_are_stamped_when_they_arrive() {
        let (mut near, far) = tokio::io::duplex(64);
        let stamps = Stamps::new(Instant::now());
        let mut reader = StampedReader::new(far, stamps.clone());
        assert_eq!(stamps.first_byte(), None);
        let mut buf = [0u8; 4];
        tokio::time::advance(Duration::from_millis(20)).await;
        near.write_all(b"abcd").await.unwrap();
        reader.read_exact(&mut buf).await.unwrap();
        tokio::time::advance(Duration::from_millis(30)).await;
        near.write_all(b"efgh").await.unwrap();
        reader.read_exact(&mut buf).await.unwrap();
        assert_eq!(stamps.first_byte(), Some(Duration::from_millis(20)));
        assert_eq!(stamps.last_byte(), Some(Duration::from_millis(50)));
        assert_eq!(stamps.payload_bytes(), 6);
        assert!(!stamps.connection_ended());
    }

    #[tokio::test]
    async fn an_end_of_stream_is_noticed() {
        let (near, far) = tokio::io::duplex(64);
        let stamps = Stamps::new(Instant::now());
        let mut reader = StampedReader::new(far, stamps.clone());
        drop(near);
        assert!(reader.read_u8().await.is_err());
        assert!(stamps.connection_ended());
        assert_eq!(stamps.first_byte(), None);
    }
}
