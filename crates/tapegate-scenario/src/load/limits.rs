//! The limits of a scenario's size.

use crate::generate::GeneratorLimits;

/// The limits of a scenario's size.
#[derive(Debug, Clone, Copy)]
pub struct ScenarioLimits {
    /// The number of phases.
    pub phases: usize,
    /// The number of tools in any one state.
    pub tools: usize,
    /// The number of resources, and of resource templates, in any one state.
    pub resources: usize,
    /// The number of prompts in any one state.
    pub prompts: usize,
    /// The depth of nested includes.
    pub include_depth: usize,
    /// The size of each file of a scenario, in bytes.
    pub config_bytes: usize,
    /// The limits of generated payloads.
    pub generator: GeneratorLimits,
}

impl Default for ScenarioLimits {
    fn default() -> Self {
        Self {
            phases: 100,
            tools: 1_000,
            resources: 1_000,
            prompts: 500,
            include_depth: 10,
            config_bytes: 10 << 20,
            generator: GeneratorLimits::default(),
        }
    }
}

/// The highest value that a limit may be raised to.
struct LimitCap {
    variable: &'static str,
    most: usize,
    of: fn(&mut ScenarioLimits) -> &mut usize,
}

const CAPS: [LimitCap; 9] = [
    LimitCap { variable: "TAPEGATE_MAX_PHASES", most: 10_000, of: |limits| &mut limits.phases },
    LimitCap { variable: "TAPEGATE_MAX_TOOLS", most: 100_000, of: |limits| &mut limits.tools },
    LimitCap {
        variable: "TAPEGATE_MAX_RESOURCES",
        most: 100_000,
        of: |limits| &mut limits.resources,
    },
    LimitCap { variable: "TAPEGATE_MAX_PROMPTS", most: 50_000, of: |limits| &mut limits.prompts },
    LimitCap {
        variable: "TAPEGATE_MAX_INCLUDE_DEPTH",
        most: 100,
        of: |limits| &mut limits.include_depth,
    },
    LimitCap {
        variable: "TAPEGATE_MAX_CONFIG_BYTES",
        most: 100 << 20,
        of: |limits| &mut limits.config_bytes,
    },
    LimitCap {
        variable: "TAPEGATE_MAX_PAYLOAD_BYTES",
        most: 1 << 30,
        of: |limits| &mut limits.generator.payload_bytes,
    },
    LimitCap {
        variable: "TAPEGATE_MAX_NEST_DEPTH",
        most: 1_000_000,
        of: |limits| &mut limits.generator.depth,
    },
    LimitCap {
        variable: "TAPEGATE_MAX_BATCH_SIZE",
        most: 1_000_000,
        of: |limits| &mut limits.generator.count,
    },
];

impl ScenarioLimits {
    /// The limits as set by environment variables; on failure, which variable is invalid.
    pub fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut limits = Self::default();
        for LimitCap { variable: name, most, of } in CAPS {
            let Some(text) = variable(name) else { continue };
            match text.trim().parse::<usize>() {
                // Limits have limits: memory for one scenario stays bounded.
                Ok(limit) if limit <= most => *of(&mut limits) = limit,
                _ => {
                    return Err(format!(
                        "{name} must be a whole number up to {most}, not `{text}`"
                    ));
                }
            }
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_raise_limits_up_to_a_cap() {
        let set = |name: &'static str, value: &'static str| {
            ScenarioLimits::from_variables(&move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(set("X", "1").unwrap().tools, 1_000);
        assert_eq!(set("TAPEGATE_MAX_TOOLS", " 5000 ").unwrap().tools, 5_000);
        assert_eq!(set("TAPEGATE_MAX_BATCH_SIZE", "7").unwrap().generator.count, 7);
        for value in ["100001", "-1", "", "many", "1e3"] {
            let error = set("TAPEGATE_MAX_TOOLS", value).unwrap_err();
            let message =
                format!("TAPEGATE_MAX_TOOLS must be a whole number up to 100000, not `{value}`");
            assert_eq!(error, message);
        }
    }
}
