//! CustomResourceDefinitions, and the validation of custom resources.
//!
//! Everything here is pure: what a CRD says goes in, schemas, errors, statuses and resources come out. The life of a CRD:
//! [`DefinitionStrategy`] prepares and validates it → [`names::status`] accepts its names and establishes it → [`resources`] says
//! what to serve, each with a [`CustomStrategy`] of its own → [`names::set_terminating`] while its objects are deleted.
//!
//! Not done: conversion between versions by webhook (objects of all versions are the same but for their `apiVersion`), and the
//! deletion of custom resources, which needs the store.

mod check;
mod custom;
mod dns;
pub mod names;
mod path;
mod resources;
pub mod scale;
mod strategy;
pub mod structural;
pub mod validate;

pub use self::{custom::CustomStrategy, resources::resources, strategy::DefinitionStrategy, validate::Validator};
