//! Report of redactions, as attributes.

use kubewake_config::model;
use kubewake_otlp::{
    AttributeChange, AttributeList, SetCondition, Value,
    view::{AnyValue, lossy},
};

/// The names of the report's attributes: for the keys, where there is one, and for their count.
#[derive(Debug)]
pub(super) struct ReportAttributes {
    redacted: (&'static str, &'static str),
    masked: (&'static str, &'static str),
    allowed: (&'static str, &'static str),
    ignored: &'static str,
}

impl ReportAttributes {
    pub(super) const ATTRIBUTES: Self = Self {
        redacted: ("redaction.redacted.keys", "redaction.redacted.count"),
        masked: ("redaction.masked.keys", "redaction.masked.count"),
        allowed: ("redaction.allowed.keys", "redaction.allowed.count"),
        ignored: "redaction.ignored.count",
    };
    /// For the body of a log record.
    pub(super) const BODY: Self = Self {
        redacted: ("redaction.body.redacted.keys", "redaction.body.redacted.count"),
        masked: ("redaction.body.masked.keys", "redaction.body.masked.count"),
        allowed: ("redaction.body.allowed.keys", "redaction.body.allowed.count"),
        ignored: "redaction.body.ignored.count",
    };
}

/// Whether a key is a report attribute of an earlier redaction, which is allowed.
pub(super) fn is_report_attribute(key: &[u8]) -> bool {
    let ReportAttributes { redacted, masked, ignored, .. } = ReportAttributes::ATTRIBUTES;
    [redacted.0, redacted.1, masked.0, masked.1, ignored].iter().any(|own| own.as_bytes() == key)
}

/// The redactions in one place.
#[derive(Debug)]
pub(super) struct RedactionReport {
    level: model::SummaryLevel,
    redacted: ReportedKeys,
    masked: ReportedKeys,
    allowed: ReportedKeys,
    ignored: ReportedKeys,
}

/// A number of keys, and their names if the summary asks for them.
#[derive(Debug, Default)]
struct ReportedKeys {
    count: i64,
    names: Vec<String>,
    /// Bytes of the names.
    length: usize,
}

/// Limit of the names kept for one place. In a body each name repeats the keys around it, which a stranger
/// chooses. A name counts with its overhead in a list, as it may be empty.
const MAX_NAMES_BYTES: usize = 64 << 10;

impl RedactionReport {
    pub(super) fn new(level: model::SummaryLevel) -> Self {
        let none = ReportedKeys::default;
        Self { level, redacted: none(), masked: none(), allowed: none(), ignored: none() }
    }

    pub(super) fn redacted(&mut self, key: &[u8]) {
        self.redacted.add(self.level, key);
    }

    pub(super) fn masked(&mut self, key: &[u8]) {
        self.masked.add(self.level, key);
    }

    pub(super) fn allowed(&mut self, key: &[u8]) {
        self.allowed.add(self.level, key);
    }

    pub(super) fn ignored(&mut self) {
        self.ignored.count += 1;
    }

    /// Whether nothing is to be reported.
    pub(super) fn is_empty_or_silent(&self) -> bool {
        let counts = [&self.redacted, &self.masked, &self.allowed, &self.ignored].map(|keys| keys.count);
        self.level == model::SummaryLevel::Silent || counts == [0; 4]
    }

    /// Writes the report, and adds it to that of an earlier redaction.
    pub(super) fn write(&self, attributes: &mut AttributeList<'_>, names: &ReportAttributes) {
        if self.is_empty_or_silent() {
            return;
        }
        self.redacted.write(attributes, self.level, Some(names.redacted.0), names.redacted.1);
        self.masked.write(attributes, self.level, Some(names.masked.0), names.masked.1);
        self.allowed.write(attributes, self.level, Some(names.allowed.0), names.allowed.1);
        self.ignored.write(attributes, self.level, None, names.ignored);
    }
}

/// The report about a body is written to the attributes of its record.
impl AttributeChange for RedactionReport {
    fn change(&self, attributes: &mut AttributeList<'_>) {
        self.write(attributes, &ReportAttributes::BODY);
    }
}

impl ReportedKeys {
    fn add(&mut self, level: model::SummaryLevel, key: &[u8]) {
        self.count += 1;
        if level == model::SummaryLevel::Debug && self.length < MAX_NAMES_BYTES {
            self.length += key.len() + size_of::<String>();
            self.names.push(lossy(key).into_owned());
        }
    }

    fn write(
        &self,
        attributes: &mut AttributeList<'_>,
        level: model::SummaryLevel,
        names_key: Option<&str>,
        count_key: &str,
    ) {
        if self.count == 0 {
            return;
        }
        if let Some(key) = names_key.filter(|_| level == model::SummaryLevel::Debug) {
            let mut names = self.names.clone();
            if let Some(earlier) = attributes.get(key).and_then(|value| value.as_text()).filter(|text| !text.is_empty())
            {
                names.extend(lossy(earlier).split(',').map(str::to_owned));
            }
            names.sort_unstable();
            attributes.set(key, &Value::String(names.join(",")), SetCondition::Always);
        }
        let earlier = match attributes.get(count_key) {
            Some(AnyValue::Int(count)) => count,
            _ => 0,
        };
        attributes.set(count_key, &Value::Int(earlier.saturating_add(self.count)), SetCondition::Always);
    }
}
