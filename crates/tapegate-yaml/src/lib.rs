//! YAML that knows where everything stands, and the tables it is checked by.
