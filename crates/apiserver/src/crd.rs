//! CustomResourceDefinitions, and the validation of custom resources.
//!
//! Everything here is pure: what a CRD says goes in, schemas, errors, statuses and resources come out. The life of a CRD:
//! [`DefinitionStrategy`] prepares and validates it → [`names::status`] accepts its names and establishes it → [`resources`] says
//! what to serve, each with a [`CustomStrategy`] of its own → [`names::set_terminating`] while its objects are deleted.
//!
//! An object is stored in one version and shown in any: [`versions`] prunes it by the schemas of both.
//!
//! Not done: conversion between versions by webhook, and the deletion of custom resources, which needs the store.

pub(crate) mod check;
mod custom;
mod dns;
pub mod names;
mod path;
mod resources;
pub mod scale;
mod strategy;
pub mod structural;
pub mod validate;
pub mod versions;

pub use self::{
    custom::CustomStrategy,
    resources::{History, fingerprint, resources},
    strategy::DefinitionStrategy,
    validate::Validator,
};
