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
    certs::files,
    der::{BIT_STRING, INTEGER, OBJECT_IDENTIFIER, SEQUENCE, expect},
};

/// 1.2.840.113549.1.1.1
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// 1.2.840.10045.2.1
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// 1.2.840.10045.3.1.7
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

/// How tokens are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// RSA PKCS #1 with SHA-256.
    Rs256,
}

/// A private key.
pub struct SigningKey {
    pair: Pair,
    public: VerifyingKey,
}

enum Pair {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// A public key.
#[derive(Clone)]
pub struct VerifyingKey {
    algorithm: Algorithm,
    parsed: ParsedPublicKey,
    spki: Vec<u8>,
    id: String,
}

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("cannot make a key")]
    Make(#[from] rcgen::Error),
    #[error("cannot read or write {path}")]
    File { path: String, source: std::io::Error },
    #[error("no private or public key in PEM")]
    Pem,
    #[error(
        "cannot use {path}: {why}; restore the file from a backup, or remove it so that a new key is made: \
         tokens that were signed with the old one are no longer accepted then"
    )]
    Damaged { path: String, why: Box<Error> },
    #[error("the key is neither RSA of 2048 to 8192 bits nor ECDSA with P-256")]
    Unsupported,
}

impl Algorithm {
    /// As in a token's header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
        }
    }
}

impl SigningKey {
    /// A new one, ECDSA because RSA takes longer to make than the server may take to start.
    pub fn generate() -> Result<Self, Error> {
        Self::from_pem(&rcgen::KeyPair::generate()?.serialize_pem())
    }

    /// The one in a file that only its owner can read, which is made if it is not there.
    pub fn in_file(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { path: path.display().to_string(), source };
        if let Some(pem) = files::read(path).map_err(failed)? {
            files::warn_if_shared(path);
            let damaged = |why| Error::Damaged { path: path.display().to_string(), why: Box::new(why) };
            return Self::from_pem(&pem).map_err(damaged);
        }
        let pem = rcgen::KeyPair::generate()?.serialize_pem();
        files::write(path, &pem, true).map_err(failed)?;
        Self::from_pem(&pem)
    }

    /// Reads a private key: PKCS#8, PKCS#1 or SEC1.
    pub fn from_pem(pem: &str) -> Result<Self, Error> {
        let pair = match PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| Error::Pem)? {
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()).ok().map(Pair::Rsa),
            PrivateKeyDer::Sec1(der) => ec(der.secret_sec1_der()),
            PrivateKeyDer::Pkcs8(der) => {
                let der = der.secret_pkcs8_der();
                ec(der).or_else(|| RsaKeyPair::from_pkcs8(der).ok().map(Pair::Rsa))
            }
            _ => None,
        };
        let pair = pair.ok_or(Error::Unsupported)?;
        let spki: Result<PublicKeyX509Der<'_>, _> = match &pair {
            Pair::Ec(pair) => pair.public_key().as_der(),
            Pair::Rsa(pair) => pair.public_key().as_der(),
        };
        let public = VerifyingKey::from_spki(spki.map_err(|_| Error::Unsupported)?.as_ref())?;
        Ok(Self { pair, public })
    }

    /// The key for those who verify.
    pub fn verifying(&self) -> &VerifyingKey {
        &self.public
    }

    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ec(pair) => Some(pair.sign(&random, message).ok()?.as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let mut signed = vec![0; pair.public_modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signed).ok()?;
                Some(signed)
            }
        }
    }
}

impl VerifyingKey {
    /// Reads a public key, or takes the public part of a private one.
    pub fn from_pem(pem: &str) -> Result<Self, Error> {
        match SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()) {
            Ok(spki) => Self::from_spki(&spki),
            Err(_) => Ok(SigningKey::from_pem(pem)?.public),
        }
    }

    fn from_spki(spki: &[u8]) -> Result<Self, Error> {
        let algorithm = algorithm(spki).ok_or(Error::Unsupported)?;
        let parsed = match algorithm {
            Algorithm::Es256 => ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, spki),
            Algorithm::Rs256 => ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, spki),
        };
        // The same name that kube-apiserver gives to a key.
        let id = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, spki));
        Ok(Self { algorithm, parsed: parsed.map_err(|_| Error::Unsupported)?, spki: spki.to_vec(), id })
    }

    /// What it signs with.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// As in a token's header.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        self.parsed.verify_sig(message, signature).is_ok()
    }

    pub(super) fn to_jwk(&self) -> Option<Value> {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (_, key) = parts(&self.spki)?;
        Some(match self.algorithm {
            Algorithm::Es256 => {
                let (x, y) = key.strip_prefix(&[0x04])?.split_at_checked(32)?;
                json!({"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256", "x": encode(x), "y": encode(y)})
            }
            Algorithm::Rs256 => {
                let (numbers, _) = expect(SEQUENCE, key)?;
                let (n, rest) = expect(INTEGER, numbers)?;
                let (e, _) = expect(INTEGER, rest)?;
                // The zero in front only says that the number is not negative.
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

fn ec(der: &[u8]) -> Option<Pair> {
    EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, der).ok().map(Pair::Ec)
}

fn algorithm(spki: &[u8]) -> Option<Algorithm> {
    let (identifier, _) = parts(spki)?;
    let (kind, parameters) = expect(OBJECT_IDENTIFIER, identifier)?;
    let is_p256 = || expect(OBJECT_IDENTIFIER, parameters).is_some_and(|(curve, _)| curve == P256);
    match kind {
        RSA => Some(Algorithm::Rs256),
        EC if is_p256() => Some(Algorithm::Es256),
        _ => None,
    }
}

/// The algorithm and the key of a SubjectPublicKeyInfo.
fn parts(spki: &[u8]) -> Option<(&[u8], &[u8])> {
    let (contents, _) = expect(SEQUENCE, spki)?;
    let (identifier, rest) = expect(SEQUENCE, contents)?;
    let (bits, _) = expect(BIT_STRING, rest)?;
    Some((identifier, bits.strip_prefix(&[0])?))
}
