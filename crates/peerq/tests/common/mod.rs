//! Running the built `peerq` as a person or a script does: processes, their lines, their exit codes.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A call of the built binary.
pub(crate) fn peerq(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peerq"));
    command.args(args);
    command
}

/// Runs to the end.
pub(crate) fn run(args: &[&str]) -> Output {
    peerq(args).output().expect("peerq starts")
}

/// The process's exit code.
pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("peerq exits by itself")
}

/// What it said on stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What it said on stdout.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A serving process; killed when dropped.
pub(crate) struct Server {
    child: Child,
    lines: BufReader<ChildStdout>,
}

/// One line of a serving process.
pub(crate) struct Served {
    pub(crate) id: String,
    pub(crate) peer: String,
}

impl Server {
    /// Serves `file` with further arguments.
    pub(crate) fn start(file: &Path, more: &[&str]) -> Self {
        let mut child = peerq(&["serve"])
            .arg(file)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("peerq serve starts");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { child, lines }
    }

    /// The next line it prints; waits for it.
    pub(crate) fn next(&mut self) -> Served {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        let mut words = line.split_whitespace().map(str::to_owned);
        let (id, peer) = (words.next(), words.next());
        Served { id: id.expect("a content id"), peer: peer.expect("an address") }
    }

    /// Sends it a signal.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Asks it to end, as Ctrl-C does, and returns its exit code.
    #[cfg(unix)]
    pub(crate) fn interrupt(mut self) -> Option<i32> {
        self.signal("INT");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal, such as `INT`.
#[cfg(unix)]
pub(crate) fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let status = Command::new("kill").args(["-s", name, &pid]).status().expect("kill runs");
    assert!(status.success());
}

/// Writes `bytes` bytes that differ everywhere.
pub(crate) fn make_file(folder: &Path, name: &str, bytes: usize) -> PathBuf {
    let path = folder.join(name);
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let content: Vec<u8> = (0..bytes)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect();
    std::fs::write(&path, content).expect("the file is written");
    path
}
