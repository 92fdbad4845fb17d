//! Keys that sign and verify tokens.

use std::{fmt, path::Path};

use aws_lc_rs::{
    digest,
    encoding::{AsDer, PublicKeyX509Der},
    rand::SystemRandom,
    signature::{
        self, ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, ParsedPublicKey,
        RSA_PKCS1_2048_8192_SHA256, RsaKeyPair,
    },
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer, pem::PemObject};
use serde_json::{Value, json};

use crate::auth::{
    certs::secret_files,
    der::{BIT_STRING, INTEGER, OBJECT_IDENTIFIER, SEQUENCE, expect},
};

/// 1.2.840.113549.1.1.1
const RSA_OID: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// 1.2.840.10045.2.1
const EC_OID: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// 1.2.840.10045.3.1.7
const P256_OID: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningAlgorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// RSA PKCS #1 with SHA-256.
    Rs256,
}

pub struct SigningKey {
    pair: SigningKeyPair,
    public: VerifyingKey,
}

enum SigningKeyPair {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

#[derive(Clone)]
pub struct VerifyingKey {
    algorithm: SigningAlgorithm,
    parsed: ParsedPublicKey,
    spki: Vec<u8>,
    id: String,
}

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("failed to generate a key")]
    Make(#[from] rcgen::Error),
    #[error("failed to read or write {path}")]
    File { path: String, source: std::io::Error },
    #[error("no private or public key in PEM")]
    Pem,
    #[error(
        "failed to load {path}: {why}; restore the file from a backup, or remove it so that a new key is generated: \
         tokens that were signed with the old key are then no longer accepted"
    )]
    Damaged { path: String, why: Box<KeyError> },
    #[error("the key is neither RSA of 2048 to 8192 bits nor ECDSA with P-256")]
    Unsupported,
}

impl SigningAlgorithm {
    /// The name in a token's header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
        }
    }
}

impl SigningKey {
    /// A new ECDSA key, because generating RSA would delay the start of the server.
    pub fn generate() -> Result<Self, KeyError> {
        Self::from_pem(&rcgen::KeyPair::generate()?.serialize_pem())
    }

    /// The key in a file that only its owner can read. A missing file is created.
    pub fn load_or_generate(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { path: path.display().to_string(), source };
        if let Some(pem) = secret_files::read(path).map_err(failed)? {
            secret_files::warn_if_shared(path);
            let damaged = |why| KeyError::Damaged { path: path.display().to_string(), why: Box::new(why) };
            return Self::from_pem(&pem).map_err(damaged);
        }
        let pem = rcgen::KeyPair::generate()?.serialize_pem();
        secret_files::write(path, &pem, true).map_err(failed)?;
        Self::from_pem(&pem)
    }

    /// Decodes a private key: PKCS#8, PKCS#1 or SEC1.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let pair = match PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| KeyError::Pem)? {
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()).ok().map(SigningKeyPair::Rsa),
            PrivateKeyDer::Sec1(der) => ecdsa_pair(der.secret_sec1_der()),
            PrivateKeyDer::Pkcs8(der) => {
                let der = der.secret_pkcs8_der();
                ecdsa_pair(der).or_else(|| RsaKeyPair::from_pkcs8(der).ok().map(SigningKeyPair::Rsa))
            }
            _ => None,
        };
        let pair = pair.ok_or(KeyError::Unsupported)?;
        let spki: Result<PublicKeyX509Der<'_>, _> = match &pair {
            SigningKeyPair::Ec(pair) => pair.public_key().as_der(),
            SigningKeyPair::Rsa(pair) => pair.public_key().as_der(),
        };
        let public = VerifyingKey::from_spki(spki.map_err(|_| KeyError::Unsupported)?.as_ref())?;
        Ok(Self { pair, public })
    }

    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.public
    }

    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.pair {
            SigningKeyPair::Ec(pair) => Some(pair.sign(&random, message).ok()?.as_ref().to_vec()),
            SigningKeyPair::Rsa(pair) => {
                let mut signed = vec![0; pair.public_modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signed).ok()?;
                Some(signed)
            }
        }
    }
}

impl VerifyingKey {
    /// Decodes a public key, or the public part of a private one.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        match SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()) {
            Ok(spki) => Self::from_spki(&spki),
            Err(_) => Ok(SigningKey::from_pem(pem)?.public),
        }
    }

    fn from_spki(spki: &[u8]) -> Result<Self, KeyError> {
        let algorithm = algorithm(spki).ok_or(KeyError::Unsupported)?;
        let parsed = match algorithm {
            SigningAlgorithm::Es256 => ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, spki),
            SigningAlgorithm::Rs256 => ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, spki),
        };
        // kube-apiserver's id of a key.
        let id = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, spki));
        Ok(Self { algorithm, parsed: parsed.map_err(|_| KeyError::Unsupported)?, spki: spki.to_vec(), id })
    }

    pub fn algorithm(&self) -> SigningAlgorithm {
        self.algorithm
    }

    /// The id in a token's header.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        self.parsed.verify_sig(message, signature).is_ok()
    }

    pub(super) fn to_jwk(&self) -> Option<Value> {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (_, key) = algorithm_oids(&self.spki)?;
        Some(match self.algorithm {
            SigningAlgorithm::Es256 => {
                let (x, y) = key.strip_prefix(&[0x04])?.split_at_checked(32)?;
                json!({"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256", "x": encode(x), "y": encode(y)})
            }
            SigningAlgorithm::Rs256 => {
                let (numbers, _) = expect(SEQUENCE, key)?;
                let (n, rest) = expect(INTEGER, numbers)?;
                let (e, _) = expect(INTEGER, rest)?;
                // The leading zero only marks the number as not negative.
                let n = n.strip_prefix(&[0]).unwrap_or(n);
                json!({"use": "sig", "kty": "RSA", "kid": self.id, "alg": "RS256", "n": encode(n), "e": encode(e)})
            }
        })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public.id)
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({:?}, {})", self.algorithm, self.id)
    }
}

fn ecdsa_pair(der: &[u8]) -> Option<SigningKeyPair> {
    EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, der).ok().map(SigningKeyPair::Ec)
}

fn algorithm(spki: &[u8]) -> Option<SigningAlgorithm> {
    let (identifier, _) = algorithm_oids(spki)?;
    let (kind, parameters) = expect(OBJECT_IDENTIFIER, identifier)?;
    let is_p256 = || expect(OBJECT_IDENTIFIER, parameters).is_some_and(|(curve, _)| curve == P256_OID);
    match kind {
        RSA_OID => Some(SigningAlgorithm::Rs256),
        EC_OID if is_p256() => Some(SigningAlgorithm::Es256),
        _ => None,
    }
}

fn algorithm_oids(spki: &[u8]) -> Option<(&[u8], &[u8])> {
    let (contents, _) = expect(SEQUENCE, spki)?;
    let (identifier, rest) = expect(SEQUENCE, contents)?;
    let (bits, _) = expect(BIT_STRING, rest)?;
    Some((identifier, bits.strip_prefix(&[0])?))
}
