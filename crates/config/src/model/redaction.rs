//! `redaction`: what must not leave.

use super::Texts;
use crate::{Pattern, Secret};

/// `redaction`
#[derive(Clone, Debug, PartialEq)]
pub struct Redaction {
    /// `allow_all_keys`: no attribute is removed for its key.
    pub allow_all_keys: bool,
    /// `allowed_keys`: all others are removed.
    pub allowed_keys: Texts,
    /// `ignored_keys`: these pass as they are.
    pub ignored_keys: Texts,
    /// `ignored_key_patterns`: and so do these.
    pub ignored_key_patterns: Vec<Pattern>,
    /// `blocked_key_patterns`: the whole value of these is masked.
    pub blocked_key_patterns: Vec<Pattern>,
    /// `blocked_values`: what matches is masked, in this order.
    pub blocked_values: Vec<Pattern>,
    /// `allowed_values`: a value that matches is not masked.
    pub allowed_values: Vec<Pattern>,
    /// `redact_all_types`: values that are not text are looked at as text.
    pub redact_all_types: bool,
    /// `hash_function`: instead of a mask.
    pub hash_function: Option<HashFunction>,
    /// `summary`: what is said about it.
    pub summary: Summary,
}

/// `hash_function`, with the `hmac_key` where it takes one.
#[derive(Clone, Debug, PartialEq)]
pub enum HashFunction {
    /// `md5`
    Md5,
    /// `sha1`
    Sha1,
    /// `sha3`: SHA3-256.
    Sha3,
    /// `hmac-sha256`
    HmacSha256(Secret),
    /// `hmac-sha512`
    HmacSha512(Secret),
}

/// `summary`: the attributes that say what was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// Nothing.
    Silent,
    /// How many attributes.
    Info,
    /// How many, and which.
    Debug,
}
