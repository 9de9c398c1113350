//! Who a node is: its mTLS certificate and the peer id that follows from it.
//!
//! The one idea: a peer id is the hash of the certificate's public key, so holding the key *is* being the peer. A key comes
//! from the operating system, from a directory (the same peer after a restart) or from a seed (the same swarm twice).

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use dig_nat::PeerId;
use dig_tls::binding::{DIG_BLS_BINDING_OID, binding_message, encode_binding_extension_value};
use dig_tls::bls::{SecretKey, public_key_bytes, sign_message};
use dig_tls::{DigTlsError, NodeCert};
use rcgen::{CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use sha2::{Digest, Sha256};

/// An Ed25519 private key in PKCS #8 (RFC 8410 section 7) is this prefix and the 32 bytes of the key.
const ED25519_PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// The name in every DIG certificate; peers are told apart by key, not by name.
const CERTIFICATE_NAME: &str = "peer.dig";

/// A node's certificate and key. Cheap to share in an [`Arc`].
pub struct Identity {
    cert: Arc<NodeCert>,
}

/// Why there is no identity. The fault is ours or the machine's.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The operating system gives no randomness.
    #[error("the operating system gives no randomness: {0}")]
    Randomness(io::Error),
    /// The certificate cannot be made, read or stored.
    #[error("cannot make, read or store this node's certificate: {0}")]
    Certificate(#[from] DigTlsError),
    /// The certificate of a seed cannot be made.
    #[error("cannot make a certificate from a seed: {0}")]
    Seeded(#[from] rcgen::Error),
}

impl Identity {
    /// A new identity from the operating system's randomness.
    ///
    /// # Errors
    /// [`IdentityError`] if there is no randomness or no certificate can be made.
    pub fn generate() -> Result<Identity, IdentityError> {
        Ok(Identity { cert: Arc::new(NodeCert::generate_signed(&random_secret()?)?) })
    }

    /// The identity stored in `directory`, which is made and filled if it has none. Blocks.
    ///
    /// # Errors
    /// [`IdentityError`] if the directory cannot be read or written, or holds something else.
    pub fn load_or_create(directory: impl AsRef<Path>) -> Result<Identity, IdentityError> {
        Ok(Identity { cert: Arc::new(NodeCert::load_or_generate(directory, &random_secret()?)?) })
    }

    /// The identity of a seed: same seed, same peer id. For swarms and tests; whoever knows the seed is this peer.
    ///
    /// ```
    /// use peerq_dig::Identity;
    ///
    /// let id = |seed: &[u8]| Identity::from_seed(seed).unwrap().peer_id();
    /// assert_eq!(id(b"one"), id(b"one"));
    /// assert_ne!(id(b"one"), id(b"two"));
    /// ```
    ///
    /// # Errors
    /// [`IdentityError::Seeded`] if the certificate cannot be made; no seed is known for which this happens.
    pub fn from_seed(seed: &[u8]) -> Result<Identity, IdentityError> {
        let secret = |label: &[u8]| -> [u8; 32] { Sha256::new_with_prefix(label).chain_update(seed).finalize().into() };
        let pkcs8 = [&ED25519_PKCS8_PREFIX[..], &secret(b"peerq/1/tls")].concat();
        let key = KeyPair::try_from(pkcs8)?;
        let bls = SecretKey::from_seed(&secret(b"peerq/1/bls"));
        let cert = sign(&key, &bls)?;
        Ok(Identity { cert: Arc::new(NodeCert::from_pem(&cert.pem(), &key.serialize_pem())?) })
    }

    /// The peer id others have to ask for.
    pub fn peer_id(&self) -> PeerId {
        self.cert.peer_id()
    }

    /// The certificate and key, for the DIG crates that take them.
    pub fn cert(&self) -> &Arc<NodeCert> {
        &self.cert
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.peer_id().to_hex()).finish()
    }
}

fn random_secret() -> Result<SecretKey, IdentityError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| IdentityError::Randomness(error.into()))?;
    Ok(SecretKey::from_seed(&seed))
}

/// A certificate for `key`, as the DIG network wants it: signed by its public authority, good for both ends of a
/// connection, bound to the BLS key. Valid for rcgen's default span, since a swarm must not depend on the clock.
fn sign(key: &KeyPair, bls: &SecretKey) -> Result<rcgen::Certificate, IdentityError> {
    let authority_key = KeyPair::from_pem(dig_tls::ca::DIG_CA_KEY_PEM)?;
    let authority = CertificateParams::from_ca_cert_pem(dig_tls::ca::DIG_CA_CERT_PEM)?.self_signed(&authority_key)?;

    let mut params = CertificateParams::new([CERTIFICATE_NAME.to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, CERTIFICATE_NAME);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let signature = sign_message(bls, &binding_message(&key.public_key_der()));
    params.custom_extensions.push(CustomExtension::from_oid_content(
        DIG_BLS_BINDING_OID,
        encode_binding_extension_value(&public_key_bytes(bls), &signature),
    ));
    Ok(params.signed_by(key, &authority, &authority_key)?)
}

#[cfg(test)]
mod tests {
    use dig_tls::binding::{BindingOutcome, verify_binding_from_leaf_cert};

    use super::*;

    #[test]
    fn a_seeded_identity_is_bound_to_its_key_like_any_other() {
        let identity = Identity::from_seed(b"seed").unwrap();
        assert!(matches!(verify_binding_from_leaf_cert(identity.cert().cert_der()), BindingOutcome::Bound { .. }));
    }

    #[test]
    fn a_stored_identity_is_the_same_peer_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let first = Identity::load_or_create(directory.path()).unwrap().peer_id();
        assert_eq!(Identity::load_or_create(directory.path()).unwrap().peer_id(), first);
        assert_ne!(Identity::generate().unwrap().peer_id(), first);
    }
}
