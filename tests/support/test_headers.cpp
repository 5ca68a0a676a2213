#include "support/test_headers.hpp"
