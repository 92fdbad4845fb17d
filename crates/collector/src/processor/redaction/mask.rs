//! What stands instead of what must not leave.

use std::fmt;

use aws_lc_rs::{
    digest::{self, digest},
    hmac,
};
use kubewake_config::{Pattern, model::HashFunction};
use kubewake_otlp::Value;
use md5::{Digest, Md5};

/// What is written instead of a match.
#[derive(Clone)]
pub(super) enum Mask {
    Stars,
    Md5,
    Digest(&'static digest::Algorithm),
    Hmac(hmac::Key),
}

/// Without the key.
impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mask")
    }
}

impl Mask {
    pub(super) fn new(function: Option<&HashFunction>) -> Self {
        match function {
            None => Self::Stars,
            Some(HashFunction::Md5) => Self::Md5,
            Some(HashFunction::Sha1) => Self::Digest(&digest::SHA1_FOR_LEGACY_USE_ONLY),
            Some(HashFunction::Sha3) => Self::Digest(&digest::SHA3_256),
            Some(HashFunction::HmacSha256(key)) => {
                Self::Hmac(hmac::Key::new(hmac::HMAC_SHA256, key.reveal().as_bytes()))
            }
            Some(HashFunction::HmacSha512(key)) => {
                Self::Hmac(hmac::Key::new(hmac::HMAC_SHA512, key.reveal().as_bytes()))
            }
        }
    }

    /// Masks what the patterns match, one after another; `None` if that changes nothing.
    pub(super) fn matches(&self, patterns: &[Pattern], text: &[u8]) -> Option<Value> {
        let mut masked: Option<Vec<u8>> = None;
        for pattern in patterns {
            let current = masked.as_deref().unwrap_or(text);
            if !pattern.is_match(current) {
                continue;
            }
            let replace = |found: &regex::bytes::Captures<'_>| self.of(found.get_match().as_bytes());
            masked = Some(pattern.regex().replace_all(current, replace).into_owned());
        }
        masked.filter(|masked| masked != text).map(value)
    }

    /// Masks the whole text, line by line, as the Collector does.
    pub(super) fn whole(&self, text: &[u8]) -> Value {
        let lines: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').map(|line| self.of(line)).collect();
        value(lines.join(&b'\n'))
    }

    fn of(&self, text: &[u8]) -> Vec<u8> {
        match self {
            Self::Stars => b"****".to_vec(),
            Self::Md5 => hex(&Md5::digest(text)),
            Self::Digest(algorithm) => hex(digest(algorithm, text).as_ref()),
            Self::Hmac(key) => hex(hmac::sign(key, text).as_ref()),
        }
    }
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

/// What is not UTF-8 was not when it came.
fn value(text: Vec<u8>) -> Value {
    Value::String(
        String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}
