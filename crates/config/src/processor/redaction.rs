//! `redaction`: removes or masks attributes.

use kubewake_otlp::Signal;

use crate::{
    RegexPattern, SecretString,
    component::{ComponentSettings, ProcessorSettings},
    decode::{Cursor, DecodeReport, FieldReader, scalar, value},
    encode::{self, YamlMap},
    matching::TextMatcher,
};

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

impl HashFunction {
    /// Its name in documents.
    fn name(&self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha3 => "sha3",
            Self::HmacSha256(_) => "hmac-sha256",
            Self::HmacSha512(_) => "hmac-sha512",
        }
    }

    fn key(&self) -> Option<&SecretString> {
        match self {
            Self::Md5 | Self::Sha1 | Self::Sha3 => None,
            Self::HmacSha256(key) | Self::HmacSha512(key) => Some(key),
        }
    }
}

/// `summary`: the attributes that describe what was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryLevel {
    Silent,
    Info,
    Debug,
}

const SUMMARIES: [(&str, SummaryLevel); 4] = [
    ("silent", SummaryLevel::Silent),
    ("", SummaryLevel::Silent),
    ("info", SummaryLevel::Info),
    ("debug", SummaryLevel::Debug),
];

impl ComponentSettings for RedactionProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let redaction = RedactionProcessor {
            allow_all_keys: fields.flag("allow_all_keys"),
            allowed_keys: keys(&mut fields, "allowed_keys"),
            ignored_keys: keys(&mut fields, "ignored_keys"),
            ignored_key_patterns: patterns(&mut fields, "ignored_key_patterns"),
            blocked_key_patterns: patterns(&mut fields, "blocked_key_patterns"),
            blocked_values: patterns(&mut fields, "blocked_values"),
            allowed_values: patterns(&mut fields, "allowed_values"),
            redact_all_types: fields.flag("redact_all_types"),
            hash_function: hash_function(&mut fields),
            summary: fields
                .get_or("summary", SummaryLevel::Silent, |at, report| scalar::keyword(at, report, &SUMMARIES)),
        };
        fields.unsupported(&["url_sanitizer", "db_sanitizer"]);
        if !fields.any_failed() {
            warn_about_settings(&fields, &redaction);
        }
        fields.finish();
        Some(redaction)
    }

    fn encode(&self) -> YamlMap {
        let map = YamlMap::default()
            .with_flag("allow_all_keys", self.allow_all_keys)
            .with_list("allowed_keys", self.allowed_keys.texts())
            .with_list("ignored_keys", self.ignored_keys.texts())
            .with_list("ignored_key_patterns", &self.ignored_key_patterns)
            .with_list("blocked_key_patterns", &self.blocked_key_patterns)
            .with_list("blocked_values", &self.blocked_values)
            .with_list("allowed_values", &self.allowed_values)
            .with_flag("redact_all_types", self.redact_all_types)
            .with_changed("summary", encode::keyword(&SUMMARIES, &self.summary), "silent");
        match &self.hash_function {
            Some(hash) => map.with_field("hash_function", hash.name()).with_optional("hmac_key", hash.key()),
            None => map,
        }
    }
}

impl ProcessorSettings for RedactionProcessor {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}

/// Warns about settings with surprising effects.
fn warn_about_settings(fields: &FieldReader<'_, '_>, redaction: &RedactionProcessor) {
    let masks = !redaction.blocked_key_patterns.is_empty() || !redaction.blocked_values.is_empty();
    let (message, help) = match redaction.allow_all_keys {
        true if masks => return,
        true => ("the processor redacts nothing", "set `blocked_values` or `blocked_key_patterns`"),
        false if redaction.allowed_keys != TextMatcher::strict(Vec::new()) => return,
        false => (
            "the processor removes every attribute: no key is allowed",
            "list the keys to keep in `allowed_keys`, or set `allow_all_keys: true`",
        ),
    };
    fields.report.warning(&fields.at, message, Some(help.into()));
}

fn keys(fields: &mut FieldReader<'_, '_>, name: &'static str) -> TextMatcher {
    TextMatcher::strict(fields.get(name, scalar::texts).unwrap_or_default())
}

fn patterns(fields: &mut FieldReader<'_, '_>, name: &'static str) -> Vec<RegexPattern> {
    let Some(at) = fields.find(name) else { return Vec::new() };
    let report = fields.report;
    match at.items() {
        Some(items) => items.filter_map(|item| value::pattern(&item, report)).collect(),
        None => {
            let texts = scalar::texts(&at, report).unwrap_or_default();
            texts.iter().filter_map(|text| value::compile(&at, report, text)).collect()
        }
    }
}

/// A hash function by its key, and the minimum length of the key in bytes.
type KeyedHash = (fn(SecretString) -> HashFunction, usize);

const HASH_FUNCTIONS: [(&str, KeyedHash); 5] = [
    ("md5", (|_| HashFunction::Md5, 0)),
    ("sha1", (|_| HashFunction::Sha1, 0)),
    ("sha3", (|_| HashFunction::Sha3, 0)),
    ("hmac-sha256", (HashFunction::HmacSha256, 32)),
    ("hmac-sha512", (HashFunction::HmacSha512, 64)),
];

fn hash_function(fields: &mut FieldReader<'_, '_>) -> Option<HashFunction> {
    let key = fields.get("hmac_key", scalar::secret).filter(|key| !key.is_empty());
    let name = fields.find("hash_function")?;
    if matches!(&name.node.value, crate::yaml::NodeValue::String(text) if text.is_empty()) {
        return None;
    }
    let (make, least) = scalar::keyword_any_case(&name, fields.report, &HASH_FUNCTIONS)?;
    let help = "set `hmac_key` from a file or the environment: ${file:…} or ${env:…}";
    match key {
        None if least > 0 => {
            fields.require("hmac_key", "`hmac_key` is missing", Some(help.into()));
            None
        }
        Some(key) if key.reveal().len() < least => {
            let message = format!("`hmac_key` must have at least {least} bytes");
            fields.report.error(&fields.cursor_at("hmac_key"), message, None);
            None
        }
        key => Some(make(key.unwrap_or_default())),
    }
}
