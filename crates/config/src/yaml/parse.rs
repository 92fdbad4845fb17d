//! From the parser's events to the tree.

use std::{borrow::Cow, collections::HashMap};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span as Range, Tag};

use crate::problem::{label, label_span};

use super::{Entry, Key, MAX_BYTES, MAX_DEPTH, MAX_NODES, Node, Span, Value, scalar};

/// What is wrong with a text as YAML.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    /// The map that it is in, if the tree can still be read.
    pub(crate) path: Vec<String>,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Reads a text that holds one document.
///
/// Faults that leave the tree readable, such as a key that is there twice, are added to `faults` and reading goes on;
/// the first one that does not ends it, and the answer is `None`. An empty text is a null node.
pub(crate) fn parse(text: &str, faults: &mut Vec<Fault>) -> Option<Node> {
    let mut builder = Builder { faults, open: Vec::new(), anchors: HashMap::new(), root: None, nodes: 0 };
    match builder.read(text) {
        Ok(()) => Some(builder.root.take().unwrap_or_else(|| Node::new(Value::Null, Span::start()))),
        Err(fault) => {
            faults.push(fault);
            None
        }
    }
}

/// A collection that is being filled.
struct Open {
    node: Node,
    anchor: usize,
    /// The key whose value comes next, in a map.
    key: Option<PendingKey>,
    /// Where each key of a map is in it.
    keys: HashMap<String, Place>,
}

struct Place {
    index: usize,
    /// It came by `<<`, so that a key of the map itself may replace it.
    merged: bool,
}

struct PendingKey {
    key: Key,
    /// `<<`, not quoted.
    merge: bool,
}

struct Builder<'f> {
    faults: &'f mut Vec<Fault>,
    open: Vec<Open>,
    /// Finished nodes that have an anchor, with their size.
    anchors: HashMap<usize, (Node, usize)>,
    root: Option<Node>,
    nodes: usize,
}

impl Builder<'_> {
    fn read(&mut self, text: &str) -> Result<(), Fault> {
        if text.len() > MAX_BYTES {
            return Err(Fault::new(Span::start(), format!("the document is longer than {MAX_BYTES} bytes")));
        }
        let mut parser = Parser::new_from_str(text);
        while let Some(next) = parser.next_event() {
            let (event, range) = next.map_err(|error| syntax(error.marker(), error.info()))?;
            self.event(event, range)?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, range: Range) -> Result<(), Fault> {
        let span = Span::of(range);
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                let fault = Fault::new(span, "there is a second document".into());
                Err(fault.help("a configuration is one document: remove the `---` and what follows it"))
            }
            Event::Scalar(text, style, anchor, tag) => self.scalar(text, style, tag.as_deref(), anchor, span),
            Event::SequenceStart(anchor, _) => self.begin(Value::Seq(Vec::new()), anchor, span),
            Event::MappingStart(anchor, _) => self.begin(Value::Map(Vec::new()), anchor, span),
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
        span: Span,
    ) -> Result<(), Fault> {
        let plain = matches!(style, ScalarStyle::Plain);
        if let Some(open) = self.expects_key() {
            if plain && matches!(&*text, "" | "~" | "null") {
                return Err(Fault::new(span, "a key is empty".into()));
            }
            let merge = plain && text == "<<";
            open.key = Some(PendingKey { key: Key { text: text.into_owned(), span }, merge });
            return Ok(());
        }
        let value = typed(&text, plain, tag).ok_or_else(|| {
            let tag = tag.map(|tag| tag.suffix.as_str()).unwrap_or_default();
            Fault::new(span, format!("the value is not of the type that its tag `!!{tag}` says"))
        })?;
        self.finish(Node::new(value, span), anchor)
    }

    fn begin(&mut self, value: Value, anchor: usize, span: Span) -> Result<(), Fault> {
        if self.expects_key().is_some() {
            return Err(Fault::new(span, "a key must be text, not a list or a map".into())
                .help("if this was meant as text, for example because it begins with `{` or `[`, put it in quotes"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(Fault::new(span, format!("the document is nested deeper than {MAX_DEPTH} levels")));
        }
        self.open.push(Open { node: Node::new(value, span), anchor, key: None, keys: HashMap::new() });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        match self.open.pop() {
            Some(open) => self.finish(open.node, open.anchor),
            None => Ok(()),
        }
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Fault> {
        if self.expects_key().is_some() {
            return Err(Fault::new(span, "an alias cannot be a key".into()));
        }
        let Some((node, size)) = self.anchors.get(&anchor) else {
            return Err(Fault::new(span, "an alias stands inside the value that it names".into()));
        };
        let (mut node, size) = (node.clone(), *size);
        if depth(&node) + self.open.len() > MAX_DEPTH {
            return Err(Fault::new(span, format!("the document is nested deeper than {MAX_DEPTH} levels")));
        }
        self.spend(size, span)?;
        // A scalar is best shown where it is used; the parts of a collection, where they are written.
        if !matches!(node.value, Value::Seq(_) | Value::Map(_)) {
            node.span = span;
        }
        self.attach(node)
    }

    /// A node is complete: remember it if it has an anchor, and hand it to what it is in.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Fault> {
        self.spend(1, node.span)?;
        if anchor != 0 {
            let size = node.count();
            self.spend(size, node.span)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        self.attach(node)
    }

    fn attach(&mut self, node: Node) -> Result<(), Fault> {
        let Some((open, outer)) = self.open.split_last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match (&mut open.node.value, open.key.take()) {
            (Value::Seq(items), _) => items.push(node),
            (Value::Map(entries), Some(PendingKey { key, merge: true })) => {
                return merge(entries, &mut open.keys, node, key.span);
            }
            (Value::Map(entries), Some(PendingKey { key, merge: false })) => {
                let name = label(&key.text);
                if let Some(mut fault) = insert(entries, &mut open.keys, Entry { key, value: node }) {
                    fault.path = path(outer);
                    fault.path.push(name);
                    self.faults.push(fault);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn expects_key(&mut self) -> Option<&mut Open> {
        self.open.last_mut().filter(|open| open.key.is_none() && matches!(open.node.value, Value::Map(_)))
    }

    fn spend(&mut self, nodes: usize, span: Span) -> Result<(), Fault> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            return Err(Fault::new(span, format!("the document holds more than {MAX_NODES} values"))
                .help("aliases count as often as they are used"));
        }
        Ok(())
    }
}

/// The way to what these hold.
fn path(open: &[Open]) -> Vec<String> {
    let step = |open: &Open| match (&open.node.value, &open.key) {
        (Value::Seq(items), _) => Some(items.len().to_string()),
        (_, key) => key.as_ref().map(|pending| label(&pending.key.text)),
    };
    open.iter().filter_map(step).collect()
}

/// What a scalar holds; `None` if it contradicts its tag. A tag that is not of the core schema says nothing here.
fn typed(text: &str, plain: bool, tag: Option<&Tag>) -> Option<Value> {
    let wanted = tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
    match wanted {
        None if plain => Some(scalar::resolve(text)),
        None => Some(Value::String(text.to_owned())),
        Some(name) => match (name, scalar::resolve(text)) {
            ("int", value @ Value::Int(_)) | ("float", value @ Value::Float(_)) => Some(value),
            ("float", Value::Int(number)) => Some(Value::Float(number as f64)),
            ("bool", value @ Value::Bool(_)) | ("null", value @ Value::Null) => Some(value),
            ("int" | "float" | "bool" | "null", _) => None,
            _ => Some(Value::String(text.to_owned())),
        },
    }
}

/// Adds an entry. A key that is there already is a fault; one that a merge brought is replaced.
fn insert(entries: &mut Vec<Entry>, keys: &mut HashMap<String, Place>, entry: Entry) -> Option<Fault> {
    let Some(place) = keys.get_mut(&entry.key.text) else {
        keys.insert(entry.key.text.clone(), Place { index: entries.len(), merged: false });
        entries.push(entry);
        return None;
    };
    let first = entries.get_mut(place.index)?;
    if place.merged {
        place.merged = false;
        *first = entry;
        return None;
    }
    let (name, line) = (label(&entry.key.text), first.key.span.line);
    let fault = Fault::new(label_span(&entry.key), format!("the key `{name}` is already defined at line {line}"));
    Some(fault.help("keep one of the two"))
}

/// `<<`: the entries of another map, or of several, where this map has none of its own.
fn merge(entries: &mut Vec<Entry>, keys: &mut HashMap<String, Place>, from: Node, span: Span) -> Result<(), Fault> {
    let maps = match from.value {
        Value::Map(map) => vec![map],
        Value::Seq(items) => items
            .into_iter()
            .map(|item| match item.value {
                Value::Map(map) => Ok(map),
                _ => Err(not_mergeable(span)),
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(not_mergeable(span)),
    };
    for entry in maps.into_iter().flatten() {
        if !keys.contains_key(&entry.key.text) {
            keys.insert(entry.key.text.clone(), Place { index: entries.len(), merged: true });
            entries.push(entry);
        }
    }
    Ok(())
}

fn not_mergeable(span: Span) -> Fault {
    Fault::new(span, "`<<` takes a map, or a list of maps".into())
}

fn depth(node: &Node) -> usize {
    match &node.value {
        Value::Seq(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Map(entries) => 1 + entries.iter().map(|entry| depth(&entry.value)).max().unwrap_or(0),
        _ => 0,
    }
}

fn syntax(mark: &Marker, info: &str) -> Fault {
    let fault = Fault::new(Span::at(mark), format!("this is not valid YAML: {info}"));
    if info.contains("tab") { fault.help("indent with spaces, not with tabs") } else { fault }
}

impl Fault {
    fn new(span: Span, message: String) -> Self {
        Self { path: Vec::new(), span, message, help: None }
    }

    fn help(self, help: &str) -> Self {
        Self { help: Some(help.to_owned()), ..self }
    }
}

impl Span {
    /// The first character of the text.
    pub(crate) fn start() -> Self {
        Self { line: 1, column: 1, width: 1, last_line: 1 }
    }

    fn at(mark: &Marker) -> Self {
        Self { line: mark.line().max(1), column: mark.col() + 1, width: 1, last_line: mark.line().max(1) }
    }

    fn of(range: Range) -> Self {
        let mut span = Self::at(&range.start);
        span.last_line = range.end.line().max(span.line);
        if range.end.line() == range.start.line() {
            span.width = range.end.col().saturating_sub(range.start.col()).max(1);
        } else {
            // The rest of the line; what shows it cuts it to what is there.
            span.width = usize::MAX;
        }
        span
    }
}
