//! What a file is called, and how its bytes are checked (HOST-D3).
//!
//! The one idea: a [`FileId`] is a hash over a file's length, its chunk size and the Merkle root of its chunk hashes, so
//! that whoever holds the id can check a [`Manifest`] from a stranger, and whoever holds the manifest can check each chunk
//! by itself. Nothing a holder says about the layout is believed before it hashes to the id.

mod error;
mod manifest;
mod merkle;

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use dig_dht::ContentId;
use sha2::{Digest, Sha256};

pub use error::{ChunkError, ManifestError};
pub use manifest::{MAX_CHUNKS, MAX_FILE_BYTES, MAX_MANIFEST_BYTES, MIN_CHUNK_BYTES, Manifest};

/// The store under which every peerq file lives in the DIG key space.
static STORE: LazyLock<[u8; 32]> = LazyLock::new(|| Sha256::digest(b"peerq/1/store").into());
/// The retrieval key of a file's bytes.
static CONTENT_KEY: LazyLock<[u8; 32]> = LazyLock::new(|| Sha256::digest(b"peerq/1/content").into());
/// The retrieval key of a file's manifest.
static MANIFEST_KEY: LazyLock<[u8; 32]> = LazyLock::new(|| Sha256::digest(b"peerq/1/manifest").into());

/// The name of a file: 32 bytes that commit to every byte of it. Text form: 64 lower-case hex digits.
///
/// ```
/// use peerq_dig::content::{FileId, Manifest};
///
/// let id = Manifest::of_bytes(b"hello").id();
/// assert_eq!(id.to_string().parse::<FileId>(), Ok(id));
/// assert!("xyz".parse::<FileId>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId([u8; 32]);

/// Which of a file's two resources a content id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The bytes of the file.
    Content,
    /// The encoded [`Manifest`].
    Manifest,
}

/// Why a text is no [`FileId`]. The fault is the caller's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileIdError {
    /// The text has the wrong length.
    #[error("a content id has 64 hex digits, this has {0} characters; copy the id that `peerq serve` printed")]
    Length(usize),
    /// The text holds something that is not a hex digit.
    #[error("a content id has hex digits only; copy the id that `peerq serve` printed")]
    NotHex,
}

impl FileId {
    /// The id with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        FileId(bytes)
    }

    /// The 32 bytes of the id.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The content id of the file's bytes.
    pub fn content(&self) -> ContentId {
        ContentId::resource(*STORE, self.0, *CONTENT_KEY)
    }

    /// The content id of the file's manifest, which any holder of the file serves too.
    pub fn manifest_content(&self) -> ContentId {
        ContentId::resource(*STORE, self.0, *MANIFEST_KEY)
    }

    /// The file and the resource that `content` names, or `None` if it is none of peerq's.
    pub fn of_content(content: &ContentId) -> Option<(FileId, Resource)> {
        match content {
            ContentId::Resource { store_id, root, retrieval_key } if store_id == &*STORE => {
                Resource::of_key(retrieval_key).map(|resource| (FileId(*root), resource))
            }
            _ => None,
        }
    }

    /// The same from the hex fields of a range request or availability item, which come from the network.
    pub(crate) fn of_wire(store: &str, root: Option<&str>, key: Option<&str>) -> Option<(FileId, Resource)> {
        let (store, root, key) = (hex32(store)?, hex32(root?)?, hex32(key?)?);
        FileId::of_content(&ContentId::resource(store, root, key))
    }

    /// The file that the hex fields of an availability item without a retrieval key name.
    pub(crate) fn of_wire_root(store: &str, root: Option<&str>) -> Option<FileId> {
        (hex32(store)? == *STORE).then_some(FileId(hex32(root?)?))
    }
}

impl Resource {
    fn of_key(key: &[u8; 32]) -> Option<Resource> {
        if key == &*CONTENT_KEY {
            Some(Resource::Content)
        } else if key == &*MANIFEST_KEY {
            Some(Resource::Manifest)
        } else {
            None
        }
    }
}

fn hex32(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileId({self})")
    }
}

impl FromStr for FileId {
    type Err = FileIdError;

    fn from_str(text: &str) -> Result<Self, FileIdError> {
        let text = text.trim();
        if text.len() != 64 {
            return Err(FileIdError::Length(text.chars().count()));
        }
        hex32(text).map(FileId).ok_or(FileIdError::NotHex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_two_resources_that_lead_back_to_it() {
        let id = FileId([7; 32]);
        assert_eq!(FileId::of_content(&id.content()), Some((id, Resource::Content)));
        assert_eq!(FileId::of_content(&id.manifest_content()), Some((id, Resource::Manifest)));
        assert_ne!(id.content().to_key(), id.manifest_content().to_key());
        assert_eq!(FileId::of_content(&ContentId::resource([0; 32], [7; 32], [0; 32])), None);
        assert_eq!(FileId::of_content(&ContentId::root(*STORE, [7; 32])), None);
    }

    #[test]
    fn a_bad_id_says_what_is_wrong_with_it() {
        assert_eq!("abc".parse::<FileId>(), Err(FileIdError::Length(3)));
        assert_eq!("é".repeat(32).parse::<FileId>(), Err(FileIdError::NotHex));
        assert_eq!("g".repeat(64).parse::<FileId>(), Err(FileIdError::NotHex));
    }
}
