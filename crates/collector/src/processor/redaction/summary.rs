//! What was done, as attributes.

use kubewake_config::model;
use kubewake_otlp::{
    AttributeList, Change, Value, When,
    view::{AnyValue, lossy},
};

/// The names of the attributes: of the keys, where there is one, and of their number.
#[derive(Debug)]
pub(super) struct Summary {
    redacted: (&'static str, &'static str),
    masked: (&'static str, &'static str),
    allowed: (&'static str, &'static str),
    ignored: &'static str,
}

impl Summary {
    /// About attributes.
    pub(super) const ATTRIBUTES: Self = Self {
        redacted: ("redaction.redacted.keys", "redaction.redacted.count"),
        masked: ("redaction.masked.keys", "redaction.masked.count"),
        allowed: ("redaction.allowed.keys", "redaction.allowed.count"),
        ignored: "redaction.ignored.count",
    };
    /// About the body of a log record.
    pub(super) const BODY: Self = Self {
        redacted: ("redaction.body.redacted.keys", "redaction.body.redacted.count"),
        masked: ("redaction.body.masked.keys", "redaction.body.masked.count"),
        allowed: ("redaction.body.allowed.keys", "redaction.body.allowed.count"),
        ignored: "redaction.body.ignored.count",
    };
}

/// Whether an attribute is one of those that are allowed because an earlier redaction left them.
pub(super) fn is_own(key: &[u8]) -> bool {
    let Summary { redacted, masked, ignored, .. } = Summary::ATTRIBUTES;
    [redacted.0, redacted.1, masked.0, masked.1, ignored].iter().any(|own| own.as_bytes() == key)
}

/// What was found in one place.
#[derive(Debug)]
pub(super) struct Found {
    level: model::Summary,
    redacted: Keys,
    masked: Keys,
    allowed: Keys,
    ignored: Keys,
}

/// How many, and which if anybody wants to know.
#[derive(Debug, Default)]
struct Keys {
    count: i64,
    names: Vec<String>,
    /// Bytes of the names.
    length: usize,
}

/// No more names are kept of one place. In a body each of them repeats the keys around it, and a stranger chooses those. A name counts
/// with what it takes in a list, as it may be empty.
const MAX_NAMES: usize = 64 << 10;

impl Found {
    pub(super) fn new(level: model::Summary) -> Self {
        let none = Keys::default;
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

    /// Whether there is anything to say.
    pub(super) fn is_silent(&self) -> bool {
        let counts = [&self.redacted, &self.masked, &self.allowed, &self.ignored].map(|keys| keys.count);
        self.level == model::Summary::Silent || counts == [0; 4]
    }

    /// Says it. What an earlier redaction said is added to.
    pub(super) fn write(&self, attributes: &mut AttributeList<'_>, names: &Summary) {
        if self.is_silent() {
            return;
        }
        self.redacted.write(attributes, self.level, Some(names.redacted.0), names.redacted.1);
        self.masked.write(attributes, self.level, Some(names.masked.0), names.masked.1);
        self.allowed.write(attributes, self.level, Some(names.allowed.0), names.allowed.1);
        self.ignored.write(attributes, self.level, None, names.ignored);
    }
}

/// What was found in a body is said beside it.
impl Change for Found {
    fn change(&self, attributes: &mut AttributeList<'_>) {
        self.write(attributes, &Summary::BODY);
    }
}

impl Keys {
    fn add(&mut self, level: model::Summary, key: &[u8]) {
        self.count += 1;
        if level == model::Summary::Debug && self.length < MAX_NAMES {
            self.length += key.len() + size_of::<String>();
            self.names.push(lossy(key).into_owned());
        }
    }

    fn write(
        &self,
        attributes: &mut AttributeList<'_>,
        level: model::Summary,
        names_key: Option<&str>,
        count_key: &str,
    ) {
        if self.count == 0 {
            return;
        }
        if let Some(key) = names_key.filter(|_| level == model::Summary::Debug) {
            let mut names = self.names.clone();
            if let Some(earlier) = attributes.get(key).and_then(|value| value.as_text()).filter(|text| !text.is_empty())
            {
                names.extend(lossy(earlier).split(',').map(str::to_owned));
            }
            names.sort_unstable();
            attributes.set(key, &Value::String(names.join(",")), When::Always);
        }
        let earlier = match attributes.get(count_key) {
            Some(AnyValue::Int(count)) => count,
            _ => 0,
        };
        attributes.set(count_key, &Value::Int(earlier.saturating_add(self.count)), When::Always);
    }
}
