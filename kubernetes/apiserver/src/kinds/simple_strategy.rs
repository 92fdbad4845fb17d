//! The rules of kinds that are mostly data: optionally a separate status, and a generation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::json_object::{
    bump_generation_if_anything_changed, init_generation, keep_all_but_status, restore_field, set,
};
use crate::registry::Strategy;

/// A kind that is mostly data.
#[derive(Clone, Copy, Debug)]
pub struct SimpleStrategy {
    status: bool,
    generation: bool,
    unconditional: bool,
}

impl SimpleStrategy {
    pub const fn new() -> Self {
        Self { status: false, generation: false, unconditional: true }
    }

    /// Adds a status, which only its own path writes.
    #[must_use]
    pub const fn status(self) -> Self {
        Self { status: true, ..self }
    }

    /// Adds a generation, which counts changes.
    #[must_use]
    pub const fn generation(self) -> Self {
        Self { generation: true, ..self }
    }

    /// Requires the resourceVersion in a PUT.
    #[must_use]
    pub const fn conditional(self) -> Self {
        Self { unconditional: false, ..self }
    }

    pub fn boxed(self) -> Arc<dyn Strategy> {
        Arc::new(self)
    }
}

impl Default for SimpleStrategy {
    fn default() -> Self {
        Self::new()
    }
}

impl Strategy for SimpleStrategy {
    fn prepare_create(&self, object: &mut Value) {
        if self.status {
            set(object, "status", json!({}));
        }
        if self.generation {
            init_generation(object);
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        if subresource == "status" {
            return keep_all_but_status(new, old);
        }
        if self.status {
            restore_field(new, old, "status");
        }
        if self.generation {
            bump_generation_if_anything_changed(new, old);
        }
    }

    fn unconditional_update(&self) -> bool {
        self.unconditional
    }
}
