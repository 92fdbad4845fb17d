//! `attributes` and `resource`: what changes attributes.

use kubewake_otlp::{Value, When};

use super::Match;
use crate::Pattern;

/// `attributes`
#[derive(Clone, Debug, PartialEq)]
pub struct Attributes {
    /// `include`: only what matches is changed.
    pub include: Option<Match>,
    /// `exclude`: what matches is not changed.
    pub exclude: Option<Match>,
    /// `actions`: what is done, in order.
    pub actions: Vec<Action>,
}

/// `resource`
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// `attributes`: what is done, in order.
    pub actions: Vec<Action>,
}

/// One change of attributes.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// `insert`, `update` or `upsert`
    Set {
        /// `key`
        key: String,
        /// Which of the three it is.
        when: When,
        /// Where the value is from.
        from: Source,
        /// `default_value`: if there is none there.
        default: Option<Value>,
    },
    /// `delete`
    Delete(Keys),
    /// `hash`
    Hash(Keys),
    /// `extract`: each named group of the pattern becomes an attribute.
    Extract {
        /// `key`
        key: String,
        /// `pattern`, all of whose groups have names.
        pattern: Pattern,
    },
    /// `convert`
    Convert {
        /// `key`
        key: String,
        /// `converted_type`
        to: ConvertedType,
    },
    /// `rename`, which the Collector does not have.
    Rename {
        /// `from_attribute`
        from: String,
        /// `key`
        to: String,
    },
}

/// Where a value is from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// `value`
    Value(Value),
    /// `from_attribute`
    Attribute(String),
    /// `from_context`
    Context(Context),
    /// Nowhere: there is only the default.
    Nothing,
}

/// `from_context`: something about whoever sent the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// `client.address`
    ClientAddress,
    /// `metadata.…`: a header, in lower case.
    Metadata(String),
    /// `auth.…`: what the authenticator says.
    Auth(String),
}

/// Which attributes: those with the key, and those whose key matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// `key`
    pub key: Option<String>,
    /// `pattern`
    pub pattern: Option<Pattern>,
}

/// `converted_type`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvertedType {
    /// `string`
    String,
    /// `int`
    Int,
    /// `double`
    Double,
}
