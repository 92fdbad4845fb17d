//! `attributes` and `resource`: change the attributes of records and of resources.
//!
//! *Guarantees.* Actions are done in their order, each on what the one before left. What they do not touch stays as it was sent,
//! and a request in which they touch nothing is not copied.

mod actions;

use kubewake_config::model;
use kubewake_otlp::{
    Allowance, Edit, Editor, Edits, NoMemory, Signal, rewrite_within,
    view::{Point, RecordRef, Resource},
};

use self::actions::Actions;
use super::{
    map::{Mapped, Mapper},
    matching::Matcher,
};
use crate::core::Part;

/// `attributes`
pub struct Attributes {
    include: Option<model::Match>,
    exclude: Option<model::Match>,
    actions: Actions,
}

impl Attributes {
    /// The processor that these settings describe.
    pub fn new(settings: model::Attributes) -> Self {
        let model::Attributes { include, exclude, actions } = settings;
        Self { include, exclude, actions: Actions::new(actions) }
    }
}

impl Mapper for Attributes {
    fn map(&self, signal: Signal, part: &Part, memory: &mut dyn Allowance) -> Result<Mapped, NoMemory> {
        let mut editor = Records {
            include: self.include.as_ref().map(Matcher::new),
            exclude: self.exclude.as_ref().map(Matcher::new),
            edit: self.actions.edit(&part.origin),
        };
        let bytes = rewrite_within(signal, &part.bytes, &mut editor, memory)?;
        Ok(Mapped { bytes, items: part.items })
    }
}

/// `resource`
pub struct Resources {
    actions: Actions,
}

impl Resources {
    /// The processor that these settings describe.
    pub fn new(settings: model::Resource) -> Self {
        Self { actions: Actions::new(settings.actions) }
    }
}

impl Mapper for Resources {
    fn map(&self, signal: Signal, part: &Part, memory: &mut dyn Allowance) -> Result<Mapped, NoMemory> {
        let mut editor = OfResources { edit: self.actions.edit(&part.origin) };
        let bytes = rewrite_within(signal, &part.bytes, &mut editor, memory)?;
        Ok(Mapped { bytes, items: part.items })
    }
}

struct Records<'m> {
    include: Option<Matcher<'m>>,
    exclude: Option<Matcher<'m>>,
    edit: Edit,
}

impl Records<'_> {
    fn is_meant(&mut self, record: &RecordRef<'_>) -> bool {
        self.include.as_mut().is_none_or(|include| include.matches(record))
            && !self.exclude.as_mut().is_some_and(|exclude| exclude.matches(record))
    }
}

impl Editor for Records<'_> {
    fn record(&mut self, record: &RecordRef<'_>, edits: &mut Edits) {
        if self.is_meant(record) {
            edits.push(self.edit.clone());
        }
    }

    fn point(&mut self, metric: &RecordRef<'_>, _: &Point<'_>, edits: &mut Edits) {
        self.record(metric, edits);
    }
}

struct OfResources {
    edit: Edit,
}

impl Editor for OfResources {
    fn resource(&mut self, _: Resource<'_>, edits: &mut Edits) {
        edits.push(self.edit.clone());
    }
}
