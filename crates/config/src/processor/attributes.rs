//! `attributes` and `resource`: processors that change attributes.

mod actions;

use kubewake_otlp::{SetCondition, Signal, Value};

use crate::{
    RegexPattern,
    component::{ComponentSettings, PipelinePlace, PlaceProblem, ProcessorSettings},
    decode::{Cursor, DecodeReport, FieldReader},
    encode::YamlMap,
    matching::{self, MatchProperties, PropertyNames},
};

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

impl ComponentSettings for AttributesProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let include = fields.get("include", matching::properties);
        let exclude = fields.get("exclude", matching::properties);
        let actions = actions::read(&mut fields, "actions");
        fields.finish();
        Some(AttributesProcessor { include, exclude, actions })
    }

    fn encode(&self) -> YamlMap {
        let conditions =
            |one: &Option<MatchProperties>| one.as_ref().map(|one| one.encode(&PropertyNames::ALL_SIGNALS));
        YamlMap::default()
            .with_optional("include", conditions(&self.include))
            .with_optional("exclude", conditions(&self.exclude))
            .with_list("actions", self.actions.iter().map(AttributeAction::encode))
    }

    fn public_fields() -> &'static [&'static str] {
        &["actions"]
    }
}

impl ProcessorSettings for AttributesProcessor {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }

    /// Refuses conditions that do not apply to records of the signal.
    fn check_place(&self, place: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        let PipelinePlace { signal, id, .. } = place;
        let matches = [&self.include, &self.exclude].into_iter().flatten();
        let unsupported = matches.filter_map(|found| found.unsupported_condition(*signal));
        let describe = |field: &str| {
            PlaceProblem::error(
                format!("the processor `{id}` matches by `{field}`, which {signal} do not have"),
                format!("define a separate processor for {signal}"),
            )
        };
        unsupported.map(describe).collect()
    }
}

impl ComponentSettings for ResourceProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let actions = actions::read(&mut fields, "attributes");
        fields.finish();
        Some(ResourceProcessor { actions })
    }

    fn encode(&self) -> YamlMap {
        YamlMap::default().with_list("attributes", self.actions.iter().map(AttributeAction::encode))
    }
}

impl ProcessorSettings for ResourceProcessor {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
