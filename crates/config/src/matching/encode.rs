//! Writes conditions.

use super::{
    AttributeMatch, LibraryMatch, MatchProperties, SeverityNumber, TextMatcher, ValueMatch, properties::SEVERITY_NAMES,
};
use crate::encode::{YamlMap, YamlValue};

/// The names of the fields that depend on where the conditions are.
pub(crate) struct PropertyNames {
    bodies: &'static str,
    severity_texts: &'static str,
    severity_number: &'static str,
    attributes: &'static str,
    resources: &'static str,
}

impl PropertyNames {
    /// The processors `attributes` and `resource`, and the spans of `filter`.
    pub(crate) const ALL_SIGNALS: Self = Self {
        bodies: "log_bodies",
        severity_texts: "log_severity_texts",
        severity_number: "log_severity_number",
        attributes: "attributes",
        resources: "resources",
    };
    /// The logs and metrics of `filter`.
    pub(crate) const ONE_SIGNAL: Self = Self {
        bodies: "bodies",
        severity_texts: "severity_texts",
        severity_number: "severity_number",
        attributes: "record_attributes",
        resources: "resource_attributes",
    };
}

impl MatchProperties {
    pub(crate) fn encode(&self, names: &PropertyNames) -> YamlMap {
        let texts = [
            ("services", &self.services),
            ("span_names", &self.span_names),
            ("metric_names", &self.metric_names),
            ("span_kinds", &self.span_kinds),
            ("status_codes", &self.status_codes),
            (names.severity_texts, &self.severity_texts),
            (names.bodies, &self.bodies),
        ];
        let texts = texts.iter().filter_map(|(name, matcher)| Some((*name, matcher.as_ref()?)));
        let with_texts = |map: YamlMap, (name, matcher): (&str, &TextMatcher)| map.with_list(name, matcher.texts());
        let map = YamlMap::default().with_optional("match_type", self.match_type());
        texts
            .fold(map, with_texts)
            .with_list(names.attributes, self.attributes.iter().map(AttributeMatch::encode))
            .with_list(names.resources, self.resources.iter().map(AttributeMatch::encode))
            .with_list("libraries", self.libraries.iter().map(LibraryMatch::encode))
            .with_optional(names.severity_number, self.severity_number.as_ref().map(SeverityNumber::encode))
    }

    /// `match_type`, if there is a condition that it applies to. All conditions have the same.
    fn match_type(&self) -> Option<&'static str> {
        let texts = [
            &self.services,
            &self.span_names,
            &self.span_kinds,
            &self.status_codes,
            &self.bodies,
            &self.severity_texts,
            &self.metric_names,
        ];
        let texts = texts.into_iter().flatten().chain(self.libraries.iter().map(|library| &library.name));
        let by_text = texts.map(|matcher| match matcher {
            TextMatcher::Strict(_) => "strict",
            TextMatcher::Regexp(_) => "regexp",
        });
        let by_value = self.attributes.iter().chain(&self.resources).filter_map(|attribute| match attribute.value {
            ValueMatch::Any => None,
            ValueMatch::Equal(_) => Some("strict"),
            ValueMatch::Regexp(_) => Some("regexp"),
        });
        by_text.chain(by_value).next()
    }
}

impl AttributeMatch {
    fn encode(&self) -> YamlMap {
        let map = YamlMap::default().with_field("key", &self.key);
        match &self.value {
            ValueMatch::Any => map,
            ValueMatch::Equal(value) => map.with_field("value", value),
            ValueMatch::Regexp(pattern) => map.with_field("value", pattern),
        }
    }
}

impl LibraryMatch {
    fn encode(&self) -> YamlMap {
        let text = |matcher: &TextMatcher| YamlValue::from(matcher.texts().first().copied().unwrap_or_default());
        YamlMap::default()
            .with_field("name", text(&self.name))
            .with_optional("version", self.version.as_ref().map(text))
    }
}

impl SeverityNumber {
    fn encode(&self) -> YamlMap {
        let place = usize::try_from(self.min).ok().and_then(|min| min.checked_sub(1));
        let name = place.and_then(|place| SEVERITY_NAMES.get(place)).copied();
        YamlMap::default().with_optional("min", name).with_flag("match_undefined", self.match_undefined)
    }
}
