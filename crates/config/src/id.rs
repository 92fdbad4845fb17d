//! Ids of components and pipelines: `type` or `type/name`.

use std::{fmt, sync::Arc};

use kubewake_otlp::Signal;

/// The id of a component as the document writes it: `otlp`, `otlp/backend`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComponentId(Arc<str>);

impl ComponentId {
    /// Creates an id without checks. The parser checks ids before.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(Arc::from(text.as_ref()))
    }

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the slash: the component's type.
    pub fn kind(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(kind, _)| kind)
    }
}

impl fmt::Display for ComponentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ComponentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a pipeline: a signal, and a name when there are several of that signal.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PipelineId {
    pub signal: Signal,
    /// The part after the slash.
    pub name: Option<Arc<str>>,
}

impl PipelineId {
    /// The id of a pipeline with a name. The parser checks names before.
    pub fn named(signal: Signal, name: &str) -> Self {
        Self { signal, name: Some(Arc::from(name)) }
    }
}

impl fmt::Display for PipelineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            None => f.write_str(self.signal.name()),
            Some(name) => write!(f, "{}/{name}", self.signal),
        }
    }
}

impl fmt::Debug for PipelineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
