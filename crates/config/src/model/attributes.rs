//! `attributes` and `resource`: processors that change attributes.

use kubewake_otlp::{SetCondition, Value};

use super::MatchProperties;
use crate::RegexPattern;

#[derive(Clone, Debug, PartialEq)]
pub struct AttributesProcessor {
    /// `include`: only matching records are changed.
    pub include: Option<MatchProperties>,
    /// `exclude`: matching records are not changed.
    pub exclude: Option<MatchProperties>,
    /// `actions`, in the order in which they are applied.
    pub actions: Vec<AttributeAction>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ResourceProcessor {
    /// `attributes`: actions, in the order in which they are applied.
    pub actions: Vec<AttributeAction>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AttributeAction {
    Set {
        key: String,
        /// The condition that the action implies.
        when: SetCondition,
        from: AttributeValueSource,
        /// `default_value`, for when the source has none.
        default: Option<Value>,
    },
    Delete(KeySelector),
    Hash(KeySelector),
    /// `extract`: each named group of the pattern becomes an attribute.
    Extract {
        key: String,
        /// `pattern`, all of whose groups have names.
        pattern: RegexPattern,
    },
    Convert {
        key: String,
        to: ConvertedType,
    },
    /// `rename`, which the Collector does not have.
    Rename {
        from: String,
        to: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValueSource {
    Value(Value),
    Attribute(String),
    Context(ContextKey),
    /// No source: only the default applies.
    Nothing,
}

/// `from_context`: a property of the request's sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextKey {
    ClientAddress,
    /// `metadata.…`: a header, in lower case.
    Metadata(String),
    /// `auth.…`: an attribute from the authenticator.
    Auth(String),
}

/// Selects attributes by key, or by a pattern that their key matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySelector {
    pub key: Option<String>,
    pub pattern: Option<RegexPattern>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvertedType {
    String,
    Int,
    Double,
}
