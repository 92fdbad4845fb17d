//! What all records of a log have in common, encoded once.

use kubewake_otlp::wire;

use crate::any_value::put_string_attribute;

/// Field numbers of `Resource` and `LogRecord`, and of the messages around records.
const RESOURCE_ATTRIBUTES: u32 = 1;
const LOG_ATTRIBUTES: u32 = 6;
const RESOURCE: u32 = 1;
const SCOPE: u32 = 1;

/// The resource, the scope and the common attributes of the records of one log, as OTLP bytes.
#[derive(Clone, Debug, Default)]
pub struct RecordEnvelope {
    /// The field `resource` of `ResourceLogs`, with its tag; empty without a resource.
    resource: Vec<u8>,
    /// The field `scope` of `ScopeLogs`, with its tag; empty without a scope.
    scope: Vec<u8>,
    /// Fields `attributes` of `LogRecord`.
    attributes: Vec<u8>,
    /// The keys in `attributes`.
    keys: Vec<String>,
}

impl RecordEnvelope {
    /// An envelope with these messages, `Resource` and `InstrumentationScope`, as they are on the wire. Empty ones are
    /// left out. They have to be valid: nothing checks them again.
    pub fn new(resource: &[u8], scope: &[u8]) -> Self {
        let field = |number, message: &[u8]| {
            let mut out = Vec::new();
            if !message.is_empty() {
                wire::put_bytes(&mut out, number, message);
            }
            out
        };
        Self {
            resource: field(RESOURCE, resource),
            scope: field(SCOPE, scope),
            attributes: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// An envelope whose resource has these attributes.
    pub fn from_resource_attributes<'a>(attributes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut resource = Vec::new();
        for (key, value) in attributes {
            put_string_attribute(&mut resource, RESOURCE_ATTRIBUTES, key.as_bytes(), value.as_bytes());
        }
        Self::new(&resource, &[])
    }

    /// Adds an attribute to every record, such as `log.file.path`. A key of a line that is equal gives way to it.
    pub fn add_record_attribute(&mut self, key: &str, value: &str) {
        put_string_attribute(&mut self.attributes, LOG_ATTRIBUTES, key.as_bytes(), value.as_bytes());
        self.keys.push(key.to_owned());
    }

    /// Whether every record has an attribute with this key.
    pub(crate) fn has_record_attribute(&self, key: &[u8]) -> bool {
        self.keys.iter().any(|own| own.as_bytes() == key)
    }

    /// The field `resource` of `ResourceLogs`.
    pub(crate) fn resource(&self) -> &[u8] {
        &self.resource
    }

    /// The field `scope` of `ScopeLogs`.
    pub(crate) fn scope(&self) -> &[u8] {
        &self.scope
    }

    /// The fields `attributes` of each `LogRecord`.
    pub(crate) fn attributes(&self) -> &[u8] {
        &self.attributes
    }
}
