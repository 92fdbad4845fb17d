//! An example of trail: head-operator.
