//! Masks for sensitive values.

use std::fmt;

use aws_lc_rs::{
    digest::{self, digest},
    hmac,
};
use kubewake_config::{RegexPattern, SecretString, model::HashFunction};
use kubewake_otlp::Value;
use md5::{Digest, Md5};

use crate::processor::hex::hex;

/// The replacement of a match.
#[derive(Clone)]
pub(super) enum ValueMask {
    Stars,
    Md5,
    Digest(&'static digest::Algorithm),
    Hmac(Box<hmac::Key>),
}

impl fmt::Debug for ValueMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mask")
    }
}

impl ValueMask {
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

    fn hmac(algorithm: hmac::Algorithm, key: &SecretString) -> Self {
        Self::Hmac(Box::new(hmac::Key::new(algorithm, key.reveal().as_bytes())))
    }

    /// Masks the matches of the patterns, one after another; `None` if nothing changes.
    pub(super) fn mask_matches(&self, patterns: &[RegexPattern], text: &[u8]) -> Option<Value> {
        let mut masked: Option<Vec<u8>> = None;
        for pattern in patterns {
            let current = masked.as_deref().unwrap_or(text);
            if !pattern.is_match(current) {
                continue;
            }
            masked = Some(self.mask_pattern(pattern, current));
        }
        masked.filter(|masked| masked != text).map(value)
    }

    fn mask_pattern(&self, pattern: &RegexPattern, text: &[u8]) -> Vec<u8> {
        let letters = std::str::from_utf8(text).unwrap_or_default();
        // Empty matches lie between characters, and not within one.
        let is_within_letter = |at: usize| at < letters.len() && !letters.is_char_boundary(at);
        let mut out = Vec::with_capacity(text.len());
        let mut done = 0;
        for found in pattern.regex().find_iter(text).filter(|found| !is_within_letter(found.start())) {
            out.extend_from_slice(text.get(done..found.start()).unwrap_or_default());
            out.extend_from_slice(self.mask_text(found.as_bytes()).as_bytes());
            done = found.end();
        }
        out.extend_from_slice(text.get(done..).unwrap_or_default());
        out
    }

    /// Masks the whole text, line by line, as the Collector does.
    pub(super) fn mask_whole(&self, text: &[u8]) -> Value {
        let lines: Vec<String> = text.split(|byte| *byte == b'\n').map(|line| self.mask_text(line)).collect();
        Value::String(lines.join("\n"))
    }

    fn mask_text(&self, text: &[u8]) -> String {
        match self {
            Self::Stars => "****".to_owned(),
            Self::Md5 => hex(&Md5::digest(text)),
            Self::Digest(algorithm) => hex(digest(algorithm, text).as_ref()),
            Self::Hmac(key) => hex(hmac::sign(key, text).as_ref()),
        }
    }
}

/// Text as a value. Text that is not UTF-8 was not when it arrived.
fn value(text: Vec<u8>) -> Value {
    Value::String(
        String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}
