//! What stands instead of what must not leave.

use std::fmt;

use aws_lc_rs::{
    digest::{self, digest},
    hmac,
};
use kubewake_config::{Pattern, Secret, model::HashFunction};
use kubewake_otlp::Value;
use md5::{Digest, Md5};

use crate::processor::hex::hex;

/// What is written instead of a match.
#[derive(Clone)]
pub(super) enum Mask {
    Stars,
    Md5,
    Digest(&'static digest::Algorithm),
    Hmac(Box<hmac::Key>),
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
            Some(HashFunction::HmacSha256(key)) => Self::hmac(hmac::HMAC_SHA256, key),
            Some(HashFunction::HmacSha512(key)) => Self::hmac(hmac::HMAC_SHA512, key),
        }
    }

    fn hmac(algorithm: hmac::Algorithm, key: &Secret) -> Self {
        Self::Hmac(Box::new(hmac::Key::new(algorithm, key.reveal().as_bytes())))
    }

    /// Masks what the patterns match, one after another; `None` if that changes nothing.
    pub(super) fn matches(&self, patterns: &[Pattern], text: &[u8]) -> Option<Value> {
        let mut masked: Option<Vec<u8>> = None;
        for pattern in patterns {
            let current = masked.as_deref().unwrap_or(text);
            if !pattern.is_match(current) {
                continue;
            }
            masked = Some(self.replace(pattern, current));
        }
        masked.filter(|masked| masked != text).map(value)
    }

    fn replace(&self, pattern: &Pattern, text: &[u8]) -> Vec<u8> {
        let letters = std::str::from_utf8(text).unwrap_or_default();
        // An expression that matches nothing does so between letters, and not within one.
        let is_within_letter = |at: usize| at < letters.len() && !letters.is_char_boundary(at);
        let (mut out, mut done) = (Vec::with_capacity(text.len()), 0);
        for found in pattern.regex().find_iter(text).filter(|found| !is_within_letter(found.start())) {
            out.extend_from_slice(text.get(done..found.start()).unwrap_or_default());
            out.extend_from_slice(self.of(found.as_bytes()).as_bytes());
            done = found.end();
        }
        out.extend_from_slice(text.get(done..).unwrap_or_default());
        out
    }

    /// Masks the whole text, line by line, as the Collector does.
    pub(super) fn whole(&self, text: &[u8]) -> Value {
        let lines: Vec<String> = text.split(|byte| *byte == b'\n').map(|line| self.of(line)).collect();
        Value::String(lines.join("\n"))
    }

    fn of(&self, text: &[u8]) -> String {
        match self {
            Self::Stars => "****".to_owned(),
            Self::Md5 => hex(&Md5::digest(text)),
            Self::Digest(algorithm) => hex(digest(algorithm, text).as_ref()),
            Self::Hmac(key) => hex(hmac::sign(key, text).as_ref()),
        }
    }
}

/// What is not UTF-8 was not when it came.
fn value(text: Vec<u8>) -> Value {
    Value::String(
        String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}
