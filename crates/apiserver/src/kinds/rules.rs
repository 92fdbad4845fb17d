//! The rules of kinds that are mostly data: a status that only its own path writes, and a generation, or neither.

use std::sync::Arc;

use serde_json::{Value, json};

use super::object::{first_generation, keep, keep_all_but_status, next_generation_of_all, set};
use crate::registry::Strategy;

/// A kind that is mostly data.
#[derive(Clone, Copy, Debug)]
pub struct Simple {
    status: bool,
    generation: bool,
    create_on_update: bool,
    unconditional: bool,
}

impl Simple {
    /// Neither status nor generation.
    pub const fn new() -> Self {
        Self { status: false, generation: false, create_on_update: false, unconditional: true }
    }

    /// With a status of its own path.
    #[must_use]
    pub const fn status(self) -> Self {
        Self { status: true, ..self }
    }

    /// With a generation that counts changes.
    #[must_use]
    pub const fn generation(self) -> Self {
        Self { generation: true, ..self }
    }

    /// A PUT may create.
    #[must_use]
    pub const fn create_on_update(self) -> Self {
        Self { create_on_update: true, ..self }
    }

    /// A PUT must say which resourceVersion it replaces.
    #[must_use]
    pub const fn conditional(self) -> Self {
        Self { unconditional: false, ..self }
    }

    /// As rules of a resource.
    pub fn boxed(self) -> Arc<dyn Strategy> {
        Arc::new(self)
    }
}

impl Default for Simple {
    fn default() -> Self {
        Self::new()
    }
}

impl Strategy for Simple {
    fn prepare_create(&self, object: &mut Value) {
        if self.status {
            set(object, "status", json!({}));
        }
        if self.generation {
            first_generation(object);
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        if subresource == "status" {
            return keep_all_but_status(new, old);
        }
        if self.status {
            keep(new, old, "status");
        }
        if self.generation {
            next_generation_of_all(new, old);
        }
    }

    fn create_on_update(&self) -> bool {
        self.create_on_update
    }

    fn unconditional_update(&self) -> bool {
        self.unconditional
    }
}
