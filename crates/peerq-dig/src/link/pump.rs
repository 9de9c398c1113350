//! Moves the bytes of one direction of one connection through a [`Lane`] (HOST-D4).
//!
//! The one idea: a piece takes its share of the line's capacity when it is read and gives it back when it is delivered; a
//! receiver that does not read stops the sender, and no queue grows.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use super::Lane;

/// How long a receiver may refuse a piece before the connection is given up.
const STALL: Duration = Duration::from_secs(300);

/// Bytes under way, when they are due, and their share of the line's capacity.
struct Piece {
    bytes: Vec<u8>,
    due: Instant,
    _share: OwnedSemaphorePermit,
}

/// Carries everything from `reader` to `writer` over `lane`, until either end closes. What is under way when the reader
/// ends is still delivered.
pub(super) async fn run<R, W>(reader: R, writer: W, lane: Arc<Lane>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    // The semaphore bounds what the channel holds.
    let (sender, receiver) = mpsc::unbounded_channel();
    let (taken, delivered) = tokio::join!(take(reader, sender, &lane), deliver(receiver, writer));
    if let Err(error) = taken.and(delivered) {
        tracing::trace!(%error, "a shaped connection ended");
    }
}

async fn take<R: AsyncRead + Unpin>(
    mut reader: R,
    sender: mpsc::UnboundedSender<Piece>,
    lane: &Lane,
) -> io::Result<()> {
    let capacity = Arc::new(Semaphore::new(lane.capacity()));
    let mut buffer = vec![0; lane.piece_bytes()];
    loop {
        let length = tokio::select! {
            read = reader.read(&mut buffer) => read?,
            () = sender.closed() => return Ok(()),
        };
        if length == 0 {
            return Ok(());
        }
        let share = Arc::clone(&capacity).acquire_many_owned(length as u32).await.map_err(io::Error::other)?;
        let due = lane.send(length).await;
        if sender.send(Piece { bytes: buffer[..length].to_vec(), due, _share: share }).is_err() {
            return Ok(());
        }
    }
}

async fn deliver<W: AsyncWrite + Unpin>(mut receiver: mpsc::UnboundedReceiver<Piece>, mut writer: W) -> io::Result<()> {
    while let Some(piece) = receiver.recv().await {
        if piece.due > Instant::now() {
            sleep_until(piece.due).await;
        }
        let writing = async {
            writer.write_all(&piece.bytes).await?;
            writer.flush().await
        };
        tokio::time::timeout(STALL, writing).await??;
    }
    writer.shutdown().await
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bytes_arrive_whole_in_order_and_when_they_are_due() {
        let lane = Arc::new(Lane::new(Some(100_000), Duration::from_millis(50)));
        let (mut near, near_far) = duplex(4096);
        let (far_near, mut far) = duplex(4096);
        tokio::spawn(run(near_far, far_near, lane));
        let start = Instant::now();
        let sent: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        let copy = sent.clone();
        tokio::spawn(async move {
            near.write_all(&copy).await.unwrap();
        });
        let mut first = [0];
        far.read_exact(&mut first).await.unwrap();
        assert!(start.elapsed() >= Duration::from_millis(50), "the first byte takes the delay");
        let mut received = first.to_vec();
        far.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, sent);
        let took = start.elapsed().as_millis();
        assert!((1050..1060).contains(&took), "took {took} ms, not 1050");
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_does_not_read_stops_the_sender() {
        let lane = Arc::new(Lane::new(None, Duration::from_millis(1)));
        let bound = lane.capacity() + lane.piece_bytes() + 2 * 4096;
        let (mut near, near_far) = duplex(4096);
        let (far_near, _far) = duplex(4096);
        tokio::spawn(run(near_far, far_near, lane));
        let mut accepted = 0;
        let zeros = vec![0; 64 * 1024];
        while let Ok(written) = tokio::time::timeout(Duration::from_secs(5), near.write(&zeros)).await {
            accepted += written.unwrap();
            assert!(accepted <= bound, "{accepted} bytes wait for a receiver that does not read");
        }
    }
}
