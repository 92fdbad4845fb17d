//! Attacks: what a stranger sends on purpose to exhaust, stall or mislead a part of the system.
//!
//! Each module holds the attacks on one part. An attack runs against a real process, with bounded load, next to
//! a legitimate client, and asserts what the process must keep: a limit of memory, answers to others, or an
//! honest refusal. Every protocol that is added brings its attacks here.

mod apiserver;
mod collector_intake;
mod collector_memory;
mod log_names;
mod node;
mod viewer;
