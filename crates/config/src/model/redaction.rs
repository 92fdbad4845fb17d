//! `redaction`: removes or masks attributes.

use super::TextMatcher;
use crate::{RegexPattern, SecretString};

#[derive(Clone, Debug, PartialEq)]
pub struct RedactionProcessor {
    /// `allow_all_keys`: attributes are not removed by their key.
    pub allow_all_keys: bool,
    /// `allowed_keys`: attributes with other keys are removed.
    pub allowed_keys: TextMatcher,
    /// `ignored_keys`: attributes with these keys are not changed.
    pub ignored_keys: TextMatcher,
    /// `ignored_key_patterns`: nor are those whose keys match one of these.
    pub ignored_key_patterns: Vec<RegexPattern>,
    /// `blocked_key_patterns`: attributes whose values are masked as a whole.
    pub blocked_key_patterns: Vec<RegexPattern>,
    /// `blocked_values`: matching parts are masked, in this order.
    pub blocked_values: Vec<RegexPattern>,
    /// `allowed_values`: a value that matches is not masked.
    pub allowed_values: Vec<RegexPattern>,
    /// `redact_all_types`: values that are not text are treated as text.
    pub redact_all_types: bool,
    /// `hash_function`: replaces values by a hash instead of a mask.
    pub hash_function: Option<HashFunction>,
    /// `summary`: the attributes that describe what was done.
    pub summary: SummaryLevel,
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
    HmacSha256(SecretString),
    /// `hmac-sha512`
    HmacSha512(SecretString),
}

/// `summary`: the attributes that describe what was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryLevel {
    Silent,
    Info,
    Debug,
}
