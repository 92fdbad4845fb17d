//! Builds a value from the parser's events.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use serde_json::{Map, Value, map::Entry};

use super::{DecodedYaml, MAX_ALIASED_BYTES, YamlDecodeError, resolve};
use crate::codec::json::{MAX_DEPTH, MAX_STRICT_ERRORS};

/// The size of a node beside its text.
const NODE_BYTES: usize = 32;

pub(super) fn read(text: &str) -> Result<DecodedYaml, YamlDecodeError> {
    let mut builder = YamlBuilder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| syntax(error.marker().line(), error.info()))?;
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        builder.event(event, span)?;
    }
    Ok(DecodedYaml { value: builder.root, duplicates: builder.duplicates })
}

#[derive(Default)]
struct YamlBuilder {
    open: Vec<OpenContainer>,
    anchors: HashMap<usize, AnchoredNode>,
    root: Value,
    duplicates: Vec<String>,
    aliased: usize,
}

/// A collection that is being filled.
struct OpenContainer {
    value: Value,
    line: usize,
    anchor: usize,
    /// The key of the next value, in a map.
    key: Option<MapKey>,
}

#[derive(Clone)]
struct MapKey {
    name: String,
    shown: String,
    merge: bool,
}

#[derive(Clone)]
struct AnchoredNode {
    value: Value,
    size: usize,
    depth: usize,
    /// The node's form as a key.
    key: Option<MapKey>,
}

impl YamlBuilder {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlDecodeError> {
        let line = span.start.line();
        match event {
            Event::Scalar(text, style, anchor, tag) => self.scalar(&text, style, tag.as_deref(), anchor, line),
            Event::SequenceStart(anchor, _) => self.begin(Value::Array(Vec::new()), anchor, line),
            Event::MappingStart(anchor, _) => self.begin(Value::Object(Map::new()), anchor, line),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.finish(open.value, open.anchor, None, open.line),
                None => Ok(()),
            },
            Event::Alias(anchor) => self.alias(anchor, line),
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        anchor: usize,
        line: usize,
    ) -> Result<(), YamlDecodeError> {
        let plain = matches!(style, ScalarStyle::Plain);
        let scalar = resolve::resolve_tagged(text, plain, tag)?;
        let merge = plain && tag.is_none() && text == "<<";
        let wants_key = self.expects_key().is_some();
        let key = match scalar.as_key() {
            Some((name, shown)) if wants_key || anchor != 0 => Some(MapKey { name, shown, merge }),
            None if wants_key => return Err(YamlDecodeError::Key("null")),
            _ => None,
        };
        if let (Some(open), Some(key)) = (self.expects_key(), &key) {
            open.key = Some(key.clone());
            if anchor != 0 {
                let value = scalar.into_value()?;
                self.remember(anchor, &value, Some(key.clone()))?;
            }
            return Ok(());
        }
        self.finish(scalar.into_value()?, anchor, key, line)
    }

    fn begin(&mut self, value: Value, anchor: usize, line: usize) -> Result<(), YamlDecodeError> {
        if self.expects_key().is_some() {
            let found = if value.is_array() { "[]interface {}" } else { "map[interface {}]interface {}" };
            return Err(YamlDecodeError::Key(found));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(YamlDecodeError::Depth(MAX_DEPTH));
        }
        self.open.push(OpenContainer { value, line, anchor, key: None });
        Ok(())
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<(), YamlDecodeError> {
        let Some(anchored) = self.anchors.get(&anchor) else { return Err(YamlDecodeError::Recursive) };
        if anchored.depth + self.open.len() > MAX_DEPTH {
            return Err(YamlDecodeError::Depth(MAX_DEPTH));
        }
        let size = anchored.size;
        if self.aliased + size > MAX_ALIASED_BYTES {
            return Err(YamlDecodeError::Aliasing);
        }
        let anchored = anchored.clone();
        self.aliased += size;
        match (self.expects_key(), anchored.key) {
            (Some(open), Some(key)) => {
                open.key = Some(key);
                Ok(())
            }
            (Some(_), None) => Err(YamlDecodeError::Key("interface {}")),
            (None, _) => self.attach(anchored.value, line),
        }
    }

    /// Completes a node: stores it if it has an anchor, and adds it to its parent.
    fn finish(&mut self, value: Value, anchor: usize, key: Option<MapKey>, line: usize) -> Result<(), YamlDecodeError> {
        if anchor != 0 {
            self.remember(anchor, &value, key)?;
        }
        self.attach(value, line)
    }

    fn remember(&mut self, anchor: usize, value: &Value, key: Option<MapKey>) -> Result<(), YamlDecodeError> {
        let (size, depth) = measure(value);
        if self.aliased + size > MAX_ALIASED_BYTES {
            return Err(YamlDecodeError::Aliasing);
        }
        self.aliased += size;
        self.anchors.insert(anchor, AnchoredNode { value: value.clone(), size, depth, key });
        Ok(())
    }

    fn attach(&mut self, value: Value, line: usize) -> Result<(), YamlDecodeError> {
        let Some(open) = self.open.last_mut() else {
            self.root = value;
            return Ok(());
        };
        match (&mut open.value, open.key.take()) {
            (Value::Array(items), _) => items.push(value),
            (Value::Object(map), Some(key)) if key.merge => merge(map, value)?,
            (Value::Object(map), Some(key)) => match map.entry(key.name) {
                Entry::Vacant(entry) => _ = entry.insert(value),
                Entry::Occupied(mut entry) => {
                    entry.insert(value);
                    if self.duplicates.len() < MAX_STRICT_ERRORS {
                        self.duplicates.push(format!("line {line}: key {} already set in map", key.shown));
                    }
                }
            },
            _ => {}
        }
        Ok(())
    }

    fn expects_key(&mut self) -> Option<&mut OpenContainer> {
        self.open.last_mut().filter(|open| open.key.is_none() && open.value.is_object())
    }
}

/// `<<`: merges the entries of another map, or of several, of which the first has precedence.
fn merge(map: &mut Map<String, Value>, from: Value) -> Result<(), YamlDecodeError> {
    match from {
        Value::Object(from) => map.extend(from),
        Value::Array(items) => {
            for item in items.into_iter().rev() {
                match item {
                    Value::Object(from) => map.extend(from),
                    _ => return Err(YamlDecodeError::Merge),
                }
            }
        }
        _ => return Err(YamlDecodeError::Merge),
    }
    Ok(())
}

/// The size and the depth of a copy. The depth of built values is bounded already.
fn measure(value: &Value) -> (usize, usize) {
    let deeper = |(size, depth): (usize, usize), (more, inner): (usize, usize)| (size + more, depth.max(inner + 1));
    match value {
        Value::String(text) => (NODE_BYTES + text.len(), 0),
        Value::Array(items) => items.iter().map(measure).fold((NODE_BYTES, 1), deeper),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| {
                let (size, depth) = measure(value);
                (size + NODE_BYTES + key.len(), depth)
            })
            .fold((NODE_BYTES, 1), deeper),
        _ => (NODE_BYTES, 0),
    }
}

/// The parser's message begins with its state, which go-yaml's does not.
fn syntax(line: usize, info: &str) -> YamlDecodeError {
    if info == "recursion limit exceeded" {
        return YamlDecodeError::Depth(MAX_DEPTH);
    }
    let message = match info.split_once(", ") {
        Some((doing, problem)) if doing.starts_with("while ") => problem,
        _ => info,
    };
    YamlDecodeError::Syntax { line, message: message.to_owned() }
}
