#include "proto/quota-wire.h"

struct rule_window wire_window(const Ration__V1__Window *window)
{
	if (!window) {
		return (struct rule_window){ 0 };
	}
	return (struct rule_window){
		.kind = (enum rule_window_kind)window->kind,
		.unit = (enum rule_window_unit)window->unit,
		.duration_ms = window->duration_ms,
	};
}

void wire_set_window(const struct rule_window *window, Ration__V1__Window *ret_window)
{
	ration__v1__window__init(ret_window);
	ret_window->kind = (Ration__V1__Window__Kind)window->kind;
	ret_window->unit = (Ration__V1__Window__Unit)window->unit;
	ret_window->duration_ms = window->duration_ms;
}

struct rule_limits wire_limits(const Ration__V1__QuotaLimits *limits)
{
	if (!limits) {
		return (struct rule_limits){ 0 };
	}
	bool has_max = limits->has_max_case != RATION__V1__QUOTA_LIMITS__HAS_MAX__NOT_SET;
	bool has_high = limits->has_high_case != RATION__V1__QUOTA_LIMITS__HAS_HIGH__NOT_SET;
	return (struct rule_limits){
		.has_max = has_max,
		.max = has_max ? limits->max : 0,
		.has_high = has_high,
		.high = has_high ? limits->high : 0,
		.low = limits->low,
		.min = limits->min,
		.shadow = limits->shadow,
		.rate = limits->rate,
		.per_ms = limits->per_ms,
		.burst = limits->burst,
	};
}

void wire_set_limits(const struct rule_limits *limits, Ration__V1__QuotaLimits *ret_limits)
{
	ration__v1__quota_limits__init(ret_limits);
	if (limits->has_max) {
		ret_limits->has_max_case = RATION__V1__QUOTA_LIMITS__HAS_MAX_MAX;
		ret_limits->max = limits->max;
	}
	if (limits->has_high) {
		ret_limits->has_high_case = RATION__V1__QUOTA_LIMITS__HAS_HIGH_HIGH;
		ret_limits->high = limits->high;
	}
	ret_limits->low = limits->low;
	ret_limits->min = limits->min;
	ret_limits->shadow = limits->shadow;
	ret_limits->rate = limits->rate;
	ret_limits->per_ms = limits->per_ms;
	ret_limits->burst = limits->burst;
}

struct rule wire_rule(const Ration__V1__Rule *rule)
{
	if (!rule) {
		return (struct rule){ .pattern = text_of(""), .source = text_of("") };
	}
	return (struct rule){
		.pattern = wire_text(rule->pattern),
		.window = wire_window(rule->window),
		.limits = wire_limits(rule->limits),
		.layer = (enum rule_layer)rule->layer,
		.overridden = rule->overridden,
		.source = wire_text(rule->source),
	};
}

void wire_set_rule(const struct rule *rule, struct wire_rule *ret_rule)
{
	ration__v1__rule__init(&ret_rule->rule);
	ret_rule->rule.pattern = wire_bytes(rule->pattern);
	ret_rule->rule.layer = (Ration__V1__Rule__Layer)rule->layer;
	ret_rule->rule.overridden = rule->overridden;
	ret_rule->rule.source = wire_bytes(rule->source);
	ret_rule->rule.window = &ret_rule->window;
	wire_set_window(&rule->window, &ret_rule->window);
	ret_rule->rule.limits = &ret_rule->limits;
	wire_set_limits(&rule->limits, &ret_rule->limits);
}
