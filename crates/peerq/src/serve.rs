//! `peerq serve`: a node that serves files until Ctrl-C (HOST-D4).

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use peerq_dig::node::{Node, NodeError};
use peerq_dig::{Identity, Manifest, PeerAddr};

use crate::exit::Failure;
use crate::interrupt::{interrupted, or_interrupted};
use crate::sizes::ByteSize;
use crate::{output, progress};

/// Serve files of any size to anyone who knows their content id.
///
/// Prints one line per file on stdout: its content id, this node's address and the path. Nothing is
/// copied: the files are read as they are asked for, and must not change while they are served.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The files to serve.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where to listen; port 0 takes any free port.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The address to tell others, where it differs from the one listened on.
    #[arg(long, value_name = "ADDR")]
    advertise: Option<SocketAddr>,
    /// A node of the network to join and announce the files to (repeatable).
    #[arg(long, value_name = "ADDR#PEER_ID")]
    bootstrap: Vec<PeerAddr>,
    /// A folder that keeps this node's identity, so that its peer id stays the same. Made if missing.
    #[arg(long, value_name = "DIR")]
    identity: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  peerq serve film.mkv
  peerq serve --listen 0.0.0.0:4100 --identity ~/.peerq film.mkv notes.pdf
  peerq serve --bootstrap 127.0.0.1:4100#3f…c2 film.mkv";

/// Serves until the process is asked to end.
///
/// # Errors
/// [`Failure::Io`] for a file, an identity or an address that cannot be used.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let files = or_interrupted("stopped before the node was up", share_list(args.paths)).await?;
    let identity = Arc::new(identity(args.identity.as_deref())?);
    let mut builder = Node::builder(identity).listen(args.listen).bootstrap(args.bootstrap.clone());
    if let Some(addr) = args.advertise {
        builder = builder.advertise(addr);
    }
    for (path, manifest) in &files {
        builder = builder.share_prepared(path, Arc::clone(manifest));
    }
    let node = builder.start().await.map_err(|error| start_failure(&error))?;
    if !args.bootstrap.is_empty()
        && let Err(error) = node.announce().await
    {
        eprintln!("warning: the files are served but not announced: {error}");
    }
    for (path, manifest) in &files {
        output::line(&format!("{}  {}  {}", manifest.id(), node.peer_addr(), path.display()))?;
    }
    let total = ByteSize(files.iter().map(|(_, manifest)| manifest.total_length()).sum());
    eprintln!("serving {} file(s), {total}; Ctrl-C stops", files.len());
    if args.listen.ip().is_unspecified() {
        eprintln!("others reach this node under an address of this machine, not under {}", args.listen.ip());
    }
    interrupted().await;
    node.shutdown().await;
    Ok(())
}

/// The identity in `folder`, or a new one for this run.
///
/// # Errors
/// [`Failure::Io`], with the folder in the message.
pub(crate) fn identity(folder: Option<&Path>) -> Result<Identity, Failure> {
    match folder {
        Some(folder) => {
            Identity::load_or_create(folder).map_err(|error| Failure::Io(format!("{}: {error}", folder.display())))
        }
        None => Identity::generate().map_err(|error| Failure::Io(error.to_string())),
    }
}

async fn share_list(paths: Vec<PathBuf>) -> Result<Vec<(PathBuf, Arc<Manifest>)>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let manifest = manifest_of(&path).await?;
        files.push((path, Arc::new(manifest)));
    }
    Ok(files)
}

/// Hashes a file off the async threads.
///
/// # Errors
/// [`Failure::Io`] that names the file.
pub(crate) async fn manifest_of(path: &Path) -> Result<Manifest, Failure> {
    let describe = |error: io::Error| Failure::Io(format!("cannot serve {}: {}", path.display(), reason(&error)));
    let metadata = tokio::fs::metadata(path).await.map_err(describe)?;
    if metadata.is_dir() {
        return Err(Failure::Io(format!("cannot serve {}: it is a folder; name the files in it", path.display())));
    }
    let spinner = progress::spinner(format!("hashing {} ({})", path.display(), ByteSize(metadata.len())));
    let owned = path.to_path_buf();
    let manifest = tokio::task::spawn_blocking(move || Manifest::of_file(&owned)).await;
    spinner.finish_and_clear();
    manifest.map_err(io::Error::other).and_then(|manifest| manifest).map_err(describe)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
        _ => error.to_string(),
    }
}

fn start_failure(error: &NodeError) -> Failure {
    match error {
        NodeError::AddressInUse { addr } => Failure::Io(format!(
            "{addr} is in use by another process; choose another with --listen, or port 0 for any free one"
        )),
        other => Failure::Io(format!("cannot start the node: {other}")),
    }
}
