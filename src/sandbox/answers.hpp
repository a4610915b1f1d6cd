#pragma once

#include "sandbox/process_calls.hpp"
#include "sandbox/sandbox.hpp"
