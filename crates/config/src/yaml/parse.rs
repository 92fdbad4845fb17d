//! Builds the tree from the parser's events.

use std::{borrow::Cow, collections::HashMap};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span as Range, Tag};

use crate::problem::{label, label_span};

use super::{MAX_DEPTH, MAX_DOCUMENT_BYTES, MAX_NODES, NodeValue, TextSpan, YamlEntry, YamlKey, YamlNode, scalar};

/// A syntax error, or a violation of YAML's rules.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlFault {
    /// The path of its map, if the tree can still be read.
    pub(crate) path: Vec<String>,
    pub(crate) span: TextSpan,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Parses a text that holds one document.
///
/// Faults that leave the tree readable, such as a duplicate key, are added to `faults`, and reading continues;
/// the first other fault ends it with `None`. An empty text is a null node.
pub(crate) fn parse(text: &str, faults: &mut Vec<YamlFault>) -> Option<YamlNode> {
    let mut builder = TreeBuilder { faults, open: Vec::new(), anchors: HashMap::new(), root: None, nodes: 0 };
    match builder.read(text) {
        Ok(()) => Some(builder.root.take().unwrap_or_else(|| YamlNode::new(NodeValue::Null, TextSpan::start()))),
        Err(fault) => {
            faults.push(fault);
            None
        }
    }
}

/// A collection in progress.
struct OpenCollection {
    node: YamlNode,
    anchor: usize,
    /// The key whose value comes next, in a map.
    key: Option<PendingKey>,
    /// The index of each key in a map.
    keys: HashMap<String, KeyPlace>,
}

struct KeyPlace {
    index: usize,
    /// Whether the entry came from `<<`, so that a key of the map itself may replace it.
    merged: bool,
}

struct PendingKey {
    key: YamlKey,
    merge: bool,
}

struct TreeBuilder<'f> {
    faults: &'f mut Vec<YamlFault>,
    open: Vec<OpenCollection>,
    /// Finished nodes that have an anchor, with their size.
    anchors: HashMap<usize, (YamlNode, usize)>,
    root: Option<YamlNode>,
    nodes: usize,
}

impl TreeBuilder<'_> {
    fn read(&mut self, text: &str) -> Result<(), YamlFault> {
        if text.len() > MAX_DOCUMENT_BYTES {
            return Err(YamlFault::new(
                TextSpan::start(),
                format!("the document is longer than {MAX_DOCUMENT_BYTES} bytes"),
            ));
        }
        let mut parser = Parser::new_from_str(text);
        while let Some(next) = parser.next_event() {
            let (event, range) = next.map_err(|error| syntax(error.marker(), error.info()))?;
            self.event(event, range)?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, range: Range) -> Result<(), YamlFault> {
        let span = TextSpan::from_range(range);
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                let fault = YamlFault::new(span, "the configuration has a second YAML document".into());
                Err(fault.help("remove the `---` and the text after it"))
            }
            Event::Scalar(text, style, anchor, tag) => self.scalar(text, style, tag.as_deref(), anchor, span),
            Event::SequenceStart(anchor, _) => self.begin(NodeValue::Seq(Vec::new()), anchor, span),
            Event::MappingStart(anchor, _) => self.begin(NodeValue::Map(Vec::new()), anchor, span),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor, span),
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        anchor: usize,
        span: TextSpan,
    ) -> Result<(), YamlFault> {
        let plain = matches!(style, ScalarStyle::Plain);
        if let Some(open) = self.expects_key() {
            if plain && matches!(&*text, "" | "~" | "null") {
                return Err(YamlFault::new(span, "a key is empty".into()));
            }
            let merge = plain && text == "<<";
            open.key = Some(PendingKey { key: YamlKey { text: text.into_owned(), span }, merge });
            return Ok(());
        }
        let value = typed(&text, plain, tag).ok_or_else(|| {
            let tag = tag.map(|tag| tag.suffix.as_str()).unwrap_or_default();
            YamlFault::new(span, format!("the value does not have the type of its tag `!!{tag}`"))
        })?;
        self.finish(YamlNode::new(value, span), anchor)
    }

    fn begin(&mut self, value: NodeValue, anchor: usize, span: TextSpan) -> Result<(), YamlFault> {
        if self.expects_key().is_some() {
            return Err(YamlFault::new(span, "a key must be text, not a list or a map".into())
                .help("put text that begins with `{` or `[` in quotes"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(YamlFault::new(span, format!("the document is nested deeper than {MAX_DEPTH} levels")));
        }
        self.open.push(OpenCollection { node: YamlNode::new(value, span), anchor, key: None, keys: HashMap::new() });
        Ok(())
    }

    fn end(&mut self) -> Result<(), YamlFault> {
        match self.open.pop() {
            Some(open) => self.finish(open.node, open.anchor),
            None => Ok(()),
        }
    }

    fn alias(&mut self, anchor: usize, span: TextSpan) -> Result<(), YamlFault> {
        if self.expects_key().is_some() {
            return Err(YamlFault::new(span, "an alias cannot be a key".into()));
        }
        let Some((node, size)) = self.anchors.get(&anchor) else {
            return Err(YamlFault::new(span, "the alias refers to a value that contains the alias".into()));
        };
        let mut node = node.clone();
        let size = *size;
        if depth(&node) + self.open.len() > MAX_DEPTH {
            return Err(YamlFault::new(span, format!("the document is nested deeper than {MAX_DEPTH} levels")));
        }
        self.reserve_nodes(size, span)?;
        // A scalar is best shown where its alias is used; the parts of a collection, where they are written.
        if !matches!(node.value, NodeValue::Seq(_) | NodeValue::Map(_)) {
            node.span = span;
        }
        self.attach(node)
    }

    /// Finishes a node: stores it if it has an anchor, and adds it to its parent.
    fn finish(&mut self, node: YamlNode, anchor: usize) -> Result<(), YamlFault> {
        self.reserve_nodes(1, node.span)?;
        if anchor != 0 {
            let size = node.count();
            self.reserve_nodes(size, node.span)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        self.attach(node)
    }

    fn attach(&mut self, node: YamlNode) -> Result<(), YamlFault> {
        let Some((open, outer)) = self.open.split_last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match (&mut open.node.value, open.key.take()) {
            (NodeValue::Seq(items), _) => items.push(node),
            (NodeValue::Map(entries), Some(PendingKey { key, merge: true })) => {
                return merge(entries, &mut open.keys, node, key.span);
            }
            (NodeValue::Map(entries), Some(PendingKey { key, merge: false })) => {
                let name = label(&key.text);
                if let Some(mut fault) = insert(entries, &mut open.keys, YamlEntry { key, value: node }) {
                    fault.path = path(outer);
                    fault.path.push(name);
                    self.faults.push(fault);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn expects_key(&mut self) -> Option<&mut OpenCollection> {
        self.open.last_mut().filter(|open| open.key.is_none() && matches!(open.node.value, NodeValue::Map(_)))
    }

    fn reserve_nodes(&mut self, nodes: usize, span: TextSpan) -> Result<(), YamlFault> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            return Err(YamlFault::new(span, format!("the document holds more than {MAX_NODES} values"))
                .help("every use of an alias counts"));
        }
        Ok(())
    }
}

/// The path to the innermost open collection.
fn path(open: &[OpenCollection]) -> Vec<String> {
    let step = |open: &OpenCollection| match (&open.node.value, &open.key) {
        (NodeValue::Seq(items), _) => Some(items.len().to_string()),
        (_, key) => key.as_ref().map(|pending| label(&pending.key.text)),
    };
    open.iter().filter_map(step).collect()
}

/// The value of a scalar; `None` if it contradicts its tag. Tags outside the core schema are ignored.
fn typed(text: &str, plain: bool, tag: Option<&Tag>) -> Option<NodeValue> {
    let wanted = tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
    match wanted {
        None if plain => Some(scalar::resolve(text)),
        None => Some(NodeValue::String(text.to_owned())),
        Some(name) => match (name, scalar::resolve(text)) {
            ("int", value @ NodeValue::Int(_)) | ("float", value @ NodeValue::Float(_)) => Some(value),
            ("float", NodeValue::Int(number)) => Some(NodeValue::Float(number as f64)),
            ("bool", value @ NodeValue::Bool(_)) | ("null", value @ NodeValue::Null) => Some(value),
            ("int" | "float" | "bool" | "null", _) => None,
            _ => Some(NodeValue::String(text.to_owned())),
        },
    }
}

/// Adds an entry. A duplicate key is a fault; one that came from a merge is replaced.
fn insert(entries: &mut Vec<YamlEntry>, keys: &mut HashMap<String, KeyPlace>, entry: YamlEntry) -> Option<YamlFault> {
    let Some(place) = keys.get_mut(&entry.key.text) else {
        keys.insert(entry.key.text.clone(), KeyPlace { index: entries.len(), merged: false });
        entries.push(entry);
        return None;
    };
    let first = entries.get_mut(place.index)?;
    if place.merged {
        place.merged = false;
        *first = entry;
        return None;
    }
    let name = label(&entry.key.text);
    let line = first.key.span.line;
    let fault = YamlFault::new(label_span(&entry.key), format!("the key `{name}` is already defined at line {line}"));
    Some(fault.help("keep one of the two"))
}

/// `<<`: adds the entries of another map, or of several, for keys that this map does not have.
fn merge(
    entries: &mut Vec<YamlEntry>,
    keys: &mut HashMap<String, KeyPlace>,
    from: YamlNode,
    span: TextSpan,
) -> Result<(), YamlFault> {
    let maps = match from.value {
        NodeValue::Map(map) => vec![map],
        NodeValue::Seq(items) => items
            .into_iter()
            .map(|item| match item.value {
                NodeValue::Map(map) => Ok(map),
                _ => Err(not_mergeable(span)),
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(not_mergeable(span)),
    };
    for entry in maps.into_iter().flatten() {
        if !keys.contains_key(&entry.key.text) {
            keys.insert(entry.key.text.clone(), KeyPlace { index: entries.len(), merged: true });
            entries.push(entry);
        }
    }
    Ok(())
}

fn not_mergeable(span: TextSpan) -> YamlFault {
    YamlFault::new(span, "`<<` takes a map, or a list of maps".into())
}

fn depth(node: &YamlNode) -> usize {
    match &node.value {
        NodeValue::Seq(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        NodeValue::Map(entries) => 1 + entries.iter().map(|entry| depth(&entry.value)).max().unwrap_or(0),
        _ => 0,
    }
}

fn syntax(mark: &Marker, info: &str) -> YamlFault {
    let fault = YamlFault::new(TextSpan::from_marker(mark), format!("this is not valid YAML: {info}"));
    if info.contains("tab") { fault.help("indent with spaces, not with tabs") } else { fault }
}

impl YamlFault {
    fn new(span: TextSpan, message: String) -> Self {
        Self { path: Vec::new(), span, message, help: None }
    }

    fn help(self, help: &str) -> Self {
        Self { help: Some(help.to_owned()), ..self }
    }
}

impl TextSpan {
    /// The position of the first character.
    pub(crate) fn start() -> Self {
        Self { line: 1, column: 1, width: 1, last_line: 1 }
    }

    fn from_marker(mark: &Marker) -> Self {
        Self { line: mark.line().max(1), column: mark.col() + 1, width: 1, last_line: mark.line().max(1) }
    }

    fn from_range(range: Range) -> Self {
        let mut span = Self::from_marker(&range.start);
        span.last_line = range.end.line().max(span.line);
        if range.end.line() == range.start.line() {
            span.width = range.end.col().saturating_sub(range.start.col()).max(1);
        } else {
            // The rest of the line; rendering cuts it to the actual length.
            span.width = usize::MAX;
        }
        span
    }
}
