//! The Merkle tree hash over a file's chunks, after RFC 9162 section 2.1.1 with SHA-256 (HOST-D3).
//!
//! The one idea: leaves and inner nodes are hashed under different first bytes, so that no inner node can be passed off as
//! a chunk, and the tree splits at the largest power of two below its size, so that one list of leaves has one root.

use sha2::{Digest, Sha256};

/// First byte of a leaf's hash input.
const LEAF: u8 = 0;
/// First byte of an inner node's hash input.
const NODE: u8 = 1;

/// Hashes one chunk piece by piece.
pub(super) struct LeafHasher(Sha256);

impl LeafHasher {
    pub(super) fn new() -> Self {
        LeafHasher(Sha256::new_with_prefix([LEAF]))
    }

    pub(super) fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    pub(super) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// The hash of one chunk.
pub(super) fn leaf(chunk: &[u8]) -> [u8; 32] {
    let mut hasher = LeafHasher::new();
    hasher.update(chunk);
    hasher.finish()
}

/// The root over `leaves`, in order. Depth is logarithmic in their number.
pub(super) fn root(leaves: &[[u8; 32]]) -> [u8; 32] {
    match leaves {
        [] => Sha256::digest([]).into(),
        [only] => *only,
        _ => {
            let split = (leaves.len().next_power_of_two()) / 2;
            let (left, right) = leaves.split_at(split);
            let mut hasher = Sha256::new_with_prefix([NODE]);
            hasher.update(root(left));
            hasher.update(root(right));
            hasher.finalize().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the certificate-transparency test vectors (leaves: "", 00, 10, 2021, 3031, 40414243, …).
    #[test]
    fn the_roots_are_those_of_the_published_vectors() {
        let chunks: [&[u8]; 8] = [
            &[],
            &[0x00],
            &[0x10],
            &[0x20, 0x21],
            &[0x30, 0x31],
            &[0x40, 0x41, 0x42, 0x43],
            &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
            &[0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f],
        ];
        let leaves: Vec<_> = chunks.iter().map(|chunk| leaf(chunk)).collect();
        let expected = [
            (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
            (2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
            (3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
            (7, "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"),
            (8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
        ];
        for (size, hex) in expected {
            assert_eq!(hex::encode(root(&leaves[..size])), hex, "{size} leaves");
        }
    }
}
